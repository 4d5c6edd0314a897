/** A field in the beginning of a form has the same value as in the parser of the whole form. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { formField, type FindField } from '../../../../supervisor/http/call/find-model.js';
import { readForm } from '../../../../worker/formats/form.js';
import { readMultipart } from '../../../../worker/formats/multipart.js';

const MULTIPART = 'multipart/form-data; boundary="b b"';
const URL_ENCODED = 'application/x-www-form-urlencoded; charset=utf-8';
const NAME = 'model_name';

const finderOf = (type: string): FindField => formField(type, NAME) as FindField;

/** Names that are similar to the wanted one, and sometimes equal. */
const names = fc.oneof(fc.constantFrom(NAME, 'model', 'model_names', 'Model_name', 'data'), fc.string());
const fields = fc.array(fc.tuple(names, fc.string()), { maxLength: 6 });

/** The first value that a parser of the whole form finds for the field. */
function firstOf(form: Readonly<Record<string, unknown>>): unknown {
  const value = Object.hasOwn(form, NAME) ? form[NAME] : undefined;
  return Array.isArray(value) ? (value as unknown[])[0] : value;
}

/** Compares the finder with the parser, for the whole body and for every beginning of it. */
function assertFound(type: string, body: Buffer, form: Readonly<Record<string, unknown>>): void {
  const find = finderOf(type);
  const expected = firstOf(form);
  const whole = find(body, true);
  assert.deepEqual(whole, expected === undefined ? 'absent' : { value: expected });
  for (let end = 0; end < body.length; end += 1) {
    const found = find(body.subarray(0, end), false);
    if (found !== 'more') assert.deepEqual(found, whole, `after ${end} bytes`);
  }
}

test('in a URL-encoded form, the value equals that of the parser, for every beginning of the form', () => {
  fc.assert(
    fc.property(fields, fc.boolean(), (pairs, isEscaped) => {
      const text = new URLSearchParams(pairs).toString();
      const escaped = isEscaped
        ? text.replace(/[a-z]/g, (one) => `%${one.charCodeAt(0).toString(16)}`)
        : text;
      const body = Buffer.from(escaped);
      assertFound(URL_ENCODED, body, readForm(body));
    }),
  );
});

test('in a multipart form, the value equals that of the parser, for every beginning of the form', () => {
  const value = fc.string().filter((text) => !text.includes('\r\n--b b'));
  const parts = fc.array(fc.tuple(names, value, fc.boolean()), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(parts, (given) => {
      const named = given.map(([name, text, isQuoted]) => [
        name.replace(/["\\\r\n]/g, '') || 'x',
        text,
        isQuoted,
      ]);
      const text = named.map(([name, content, isQuoted]) => {
        const quoted = isQuoted === true || !/^\w+$/.test(String(name)) ? `"${String(name)}"` : String(name);
        return `--b b\r\nContent-Disposition: form-data; name=${quoted}\r\n\r\n${String(content)}\r\n`;
      });
      const body = Buffer.from(`${text.join('')}--b b--\r\n`);
      assertFound(MULTIPART, body, readMultipart(body, MULTIPART));
    }),
  );
});

describe('a malformed form gives `more`, which is final at the end of the body', () => {
  for (const [type, body] of [
    [MULTIPART, `--b b\r\nContent-Disposition: form-data; name=${NAME}\r\n\r\ncut off`],
    [MULTIPART, 'no form at all'],
    ['multipart/form-data', 'no boundary'],
    [MULTIPART, `--b b\r\n\r\n\r\n--b b--`],
  ] as const)
    test(JSON.stringify(body), () => assert.equal(finderOf(type)(Buffer.from(body), true), 'more'));
});

test('a pair that is cut off is not found: its value might continue', () => {
  const find = finderOf(URL_ENCODED);
  assert.equal(find(Buffer.from('a=1&model_name=di'), false), 'more');
  assert.deepEqual(find(Buffer.from('model_name=digits&b'), false), { value: 'digits' });
});

for (const type of ['application/json', '', 'text/plain', 'multipart/mixed; boundary=x'])
  test(`a body of the type "${type}" is not a form`, () => assert.equal(formField(type, NAME), null));
