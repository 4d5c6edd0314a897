/** Checks that docs/errors.md lists every code with its status and source. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ERRORS, ServeError, httpStatus, type ErrorCode } from '../../protocol/errors.js';
import { decodeHead, encodeHead } from '../../protocol/wire/codec.js';
import { errorBody } from '../../supervisor/http/answer/house-error.js';
import { tableRows } from '../helpers/doc-page.js';
import { ROOT } from '../helpers/server.js';

const CODES = Object.keys(ERRORS) as ErrorCode[];
const ROWS = tableRows('errors.md', 'Codes', 'code');

test('docs/errors.md lists every code once, those that clients see first', () => {
  const listed = ROWS.map(({ code }) => code);
  const seen = CODES.filter((code) => ERRORS[code].status !== null);
  const unseen = CODES.filter((code) => ERRORS[code].status === null);
  assert.deepEqual(listed, [...seen, ...unseen]);
});

for (const { code = '', status, source, 'ran?': ran, fault, meaning, 'what to do': cure } of ROWS) {
  test(`docs/errors.md has status, source, fault and cure of ${code}`, () => {
    const own = ERRORS[code as ErrorCode].status ?? '–';
    assert.equal(status, code === 'SERVE_HTTP_ERROR' ? '400 to 599' : String(own));
    assert.equal(source, ERRORS[code as ErrorCode].source);
    assert.match(ran ?? '', /^(no|maybe|yes)$/);
    assert.equal(new ServeError(code as ErrorCode).begun, ran !== 'no');
    assert.match(fault ?? '', /^(client|load|model|operator|server)$/);
    for (const text of [meaning, cure]) assert.match(text ?? '', /\.$/, 'a sentence');
  });
}

test('docs/errors.md gives the source of Retry-After for every 503', () => {
  const page = readFileSync(`${ROOT}docs/errors.md`, 'utf8');
  const promise = page.split('\n').find((line) => line.startsWith('- `Retry-After` is on every 503')) ?? '';
  const named = new Set(promise.match(/SERVE_\w+/g));
  const refusals = CODES.filter((code) => ERRORS[code].status === 503);
  assert.deepEqual([...named].sort(), [...refusals, 'SERVE_QUEUE_TIMEOUT'].sort());
});

test('an error about wrong values of the input lists them', () => {
  const issues = [{ path: ['age', 0], message: 'a number is needed' }];
  const body = (given: Partial<ServeError>): unknown =>
    JSON.parse(String(errorBody(new ServeError('SERVE_HTTP_ERROR', 'm', given), 'id')));
  const error = { code: 'SERVE_HTTP_ERROR', message: 'm', requestId: 'id', source: 'app', begun: true };
  assert.deepEqual(body({ status: 422, issues }), { error: { ...error, issues } });
  assert.deepEqual(body({ status: 422 }), { error });
  const message = {
    type: 'error',
    id: 1,
    code: '',
    message: '',
    detail: '',
    runMs: 1,
    status: 422,
    kind: '',
    issues,
  } as const;
  assert.deepEqual(decodeHead(encodeHead(message)), message);
});

test('no status that common clients hide', () => {
  for (const code of CODES) assert.ok(![429, 502].includes(httpStatus(code)), code);
});

test('a code that is not meant for clients maps to 500', () => {
  assert.equal(httpStatus('SERVE_CONFIG'), 500);
});
