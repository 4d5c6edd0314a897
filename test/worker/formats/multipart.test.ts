import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readMultipart } from '../../../worker/formats/multipart.js';
import type { UploadedFile } from '../../../worker/api/types.js';
import { serveError } from '../refusals.js';

const TYPE = 'multipart/form-data; boundary=xx';

function part(headers: string, content: string): string {
  return `--xx\r\n${headers}\r\n\r\n${content}\r\n`;
}

const field = (name: string, value: string): string =>
  part(`content-disposition: form-data; name="${name}"`, value);

const file = (name: string, filename: string, content: string): string =>
  part(
    `content-disposition: form-data; name="${name}"; filename="${filename}"\r\ncontent-type: text/csv`,
    content,
  );

const body = (...parts: string[]): Buffer => Buffer.from(`${parts.join('')}--xx--\r\n`);

test('readMultipart gives fields as text and files with name, type and bytes', async () => {
  const form = await readMultipart(body(field('prompt', 'héllo'), file('data', 'a.csv', '1,2\r\n3')), TYPE);
  const { data, ...fields } = form;
  assert.deepEqual(fields, { prompt: 'héllo' });
  const { filename, contentType, data: bytes } = data as UploadedFile;
  assert.deepEqual([filename, contentType], ['a.csv', 'text/csv']);
  assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype);
  assert.equal(Buffer.from(bytes).toString(), '1,2\r\n3');
});

test('the bytes of a file are memory of their own', async () => {
  const bytes = body(file('data', 'a.bin', 'abcd'));
  const form = await readMultipart(bytes, TYPE);
  bytes.fill(0);
  const { data } = form['data'] as UploadedFile;
  assert.equal(Buffer.from(data).toString(), 'abcd');
  assert.equal(data.buffer.byteLength, 4);
});

test('a name that comes again becomes a list, fields and files alike, in order', async () => {
  const form = await readMultipart(
    body(field('a', '1'), field('a', '2'), field('b', 'x'), field('a', '3')),
    TYPE,
  );
  assert.deepEqual(form, { a: ['1', '2', '3'], b: 'x' });
  const files = await readMultipart(body(file('f', '1.csv', 'one'), file('f', '2.csv', 'two')), TYPE);
  assert.deepEqual(
    (files['f'] as UploadedFile[]).map(({ filename }) => filename),
    ['1.csv', '2.csv'],
  );
});

test('an octet-stream part without a filename is a file with an empty name', async () => {
  const unnamed = part(
    'content-disposition: form-data; name="raw"\r\ncontent-type: application/octet-stream',
    'x',
  );
  const form = await readMultipart(body(unnamed), TYPE);
  assert.equal((form['raw'] as UploadedFile).filename, '');
});

test('a field named __proto__ is a field, and no prototype changes', async () => {
  const form = await readMultipart(body(field('__proto__', 'x'), field('constructor', 'y')), TYPE);
  assert.equal(Object.getPrototypeOf(form), Object.prototype);
  assert.equal(Object.getOwnPropertyDescriptor(form, '__proto__')?.value, 'x');
  assert.equal(form['constructor'], 'y');
});

test('a field over one megabyte is not cut', async () => {
  const form = await readMultipart(body(field('long', 'x'.repeat(3_000_000))), TYPE);
  assert.equal((form['long'] as string).length, 3_000_000);
});

test('an empty form is an empty object, an empty file has no bytes', async () => {
  assert.deepEqual(await readMultipart(body(), TYPE), {});
  const form = await readMultipart(body(file('f', 'empty.csv', '')), TYPE);
  assert.equal((form['f'] as UploadedFile).data.length, 0);
});

for (const [what, bytes, type] of [
  ['without a boundary', body(field('a', '1')), 'multipart/form-data'],
  ['with an empty boundary', body(field('a', '1')), 'multipart/form-data; boundary='],
  ['with another boundary than announced', body(field('a', '1')), 'multipart/form-data; boundary=yy'],
  ['that is no multipart', Buffer.from('{"a":1}'), TYPE],
] as const) {
  test(`readMultipart refuses a body ${what}`, async () => {
    await assert.rejects(
      readMultipart(bytes, type),
      serveError('SERVE_BAD_BODY', /^The multipart body could not be read: /),
    );
  });
}

test('a body cut anywhere before its closing boundary is refused, never left waiting', async () => {
  const whole = body(field('a', '1'), file('f', 'x.csv', 'content'));
  const closing = whole.length - '\r\n'.length;
  for (let end = 0; end < closing; end += 1) {
    await assert.rejects(
      readMultipart(whole.subarray(0, end), TYPE),
      serveError('SERVE_BAD_BODY', /Unexpected end of multipart data/),
      `cut at ${end}`,
    );
  }
});

test('any damage to a body settles as a form or as SERVE_BAD_BODY', async () => {
  const whole = body(field('a', '1'), file('f', 'x.csv', 'content'), field('b', '2'));
  const damage = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 })), {
    maxLength: 6,
  });
  await fc.assert(
    fc.asyncProperty(damage, async (changes) => {
      const bytes = Buffer.from(whole);
      for (const [at, byte] of changes) bytes[at] = byte;
      const outcome = await readMultipart(bytes, TYPE).catch((error: unknown) => {
        serveError('SERVE_BAD_BODY', /^The multipart body could not be read: /)(error);
        return {};
      });
      assert.equal(typeof outcome, 'object');
    }),
    { numRuns: 500 },
  );
});
