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

test('readMultipart gives fields as text and files with name, type and bytes', () => {
  const form = readMultipart(body(field('prompt', 'héllo'), file('data', 'a.csv', '1,2\r\n3')), TYPE);
  const { data, ...fields } = form;
  assert.deepEqual(fields, { prompt: 'héllo' });
  const { filename, contentType, data: bytes } = data as UploadedFile;
  assert.deepEqual([filename, contentType], ['a.csv', 'text/csv']);
  assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype);
  assert.equal(Buffer.from(bytes).toString(), '1,2\r\n3');
});

for (const [type, isFile] of [
  ['image/png', true],
  ['application/octet-stream', true],
  ['application/xml', true],
  ['text/csv; charset=utf-8', false],
  ['Application/JSON', false],
  ['application/ld+json', false],
] as const) {
  test(`a part of type ${type} without a file name is ${isFile ? 'bytes' : 'text'}`, () => {
    const bytes = Buffer.from(isFile ? '89504eff00' : '{"a":1}', isFile ? 'hex' : 'utf8');
    const headers = `content-disposition: form-data; name="p"\r\ncontent-type: ${type}`;
    const whole = Buffer.concat([
      Buffer.from(`--xx\r\n${headers}\r\n\r\n`),
      bytes,
      Buffer.from('\r\n--xx--\r\n'),
    ]);
    const { p } = readMultipart(whole, TYPE);
    if (!isFile) assert.equal(p, '{"a":1}');
    else assert.deepEqual(p, { filename: '', contentType: type, data: new Uint8Array(bytes) });
  });
}

test('the bytes of a file are memory of their own', () => {
  const bytes = body(file('data', 'a.bin', 'abcd'));
  const form = readMultipart(bytes, TYPE);
  bytes.fill(0);
  const { data } = form['data'] as UploadedFile;
  assert.equal(Buffer.from(data).toString(), 'abcd');
  assert.equal(data.buffer.byteLength, 4);
});

test('a name that comes again becomes a list, fields and files alike, in order', () => {
  const form = readMultipart(body(field('a', '1'), field('a', '2'), field('b', 'x'), field('a', '3')), TYPE);
  assert.deepEqual(form, { a: ['1', '2', '3'], b: 'x' });
  const files = readMultipart(body(file('f', '1.csv', 'one'), file('f', '2.csv', 'two')), TYPE);
  assert.deepEqual(
    (files['f'] as UploadedFile[]).map(({ filename }) => filename),
    ['1.csv', '2.csv'],
  );
});

test('an octet-stream part without a filename is a file with an empty name', () => {
  const unnamed = part(
    'content-disposition: form-data; name="raw"\r\ncontent-type: application/octet-stream',
    'x',
  );
  const form = readMultipart(body(unnamed), TYPE);
  assert.equal((form['raw'] as UploadedFile).filename, '');
});

test('a field named __proto__ is a field, and prototypes stay unchanged', () => {
  const form = readMultipart(body(field('__proto__', 'x'), field('constructor', 'y')), TYPE);
  assert.equal(Object.getPrototypeOf(form), Object.prototype);
  assert.equal(Object.getOwnPropertyDescriptor(form, '__proto__')?.value, 'x');
  assert.equal(form['constructor'], 'y');
});

test('a field over one megabyte is not cut', () => {
  const form = readMultipart(body(field('long', 'x'.repeat(3_000_000))), TYPE);
  assert.equal((form['long'] as string).length, 3_000_000);
});

test('an empty form is an empty object, an empty file has no bytes', () => {
  assert.deepEqual(readMultipart(body(), TYPE), {});
  const form = readMultipart(body(file('f', 'empty.csv', '')), TYPE);
  assert.equal((form['f'] as UploadedFile).data.length, 0);
});

for (const [what, bytes, type] of [
  ['without a boundary', body(field('a', '1')), 'multipart/form-data'],
  ['with an empty boundary', body(field('a', '1')), 'multipart/form-data; boundary='],
  ['with a boundary of 71 characters', body(), `multipart/form-data; boundary=${'x'.repeat(71)}`],
  ['whose boundary goes on in its line', Buffer.from('--xxy\r\n\r\n\r\n--xx--'), TYPE],
  ['with another boundary than announced', body(field('a', '1')), 'multipart/form-data; boundary=yy'],
  ['that is no multipart', Buffer.from('{"a":1}'), TYPE],
] as const) {
  test(`readMultipart refuses a body ${what}`, () => {
    assert.throws(
      () => readMultipart(bytes, type),
      serveError('SERVE_BAD_BODY', /^The multipart body could not be read: /),
    );
  });
}

for (const [what, text] of [
  ['bare boundaries', '--xx\r\n'],
  ['boundaries in one line with headers that never end', '--xx\r\na: b\r\n'],
  ['parts that are no form fields', part('content-type: text/plain', 'x')],
  ['parts without a name', part('content-disposition: form-data; filename="x"', 'x')],
  ['parts with a line break in their name', part('content-disposition: form-data; name="a\nb"', 'x')],
] as const) {
  test(`a body of ${what} is refused at the first of them`, () => {
    const many = Buffer.from(`${text.repeat(100_000)}--xx--\r\n`);
    assert.throws(() => readMultipart(many, TYPE), serveError('SERVE_BAD_BODY', /: part 1 has no /));
  });
}

test('headers of a part may be long, but not without end', () => {
  const long = (length: number): Buffer =>
    body(part(`content-disposition: form-data; name="a"\r\nx: ${'y'.repeat(length)}`, '1'));
  assert.deepEqual(readMultipart(long(16_000), TYPE), { a: '1' });
  const refusal = serveError('SERVE_BAD_BODY', /part 1 has no headers within 16384 bytes/);
  assert.throws(() => readMultipart(long(20_000), TYPE), refusal);
});

for (const [given, filename] of [
  ['filename="C:\\folder\\a.txt"', 'a.txt'],
  ['filename="/etc/passwd"', 'passwd'],
  ['filename=".."', ''],
  ['filename="a \\"quoted\\" name.txt"', 'a "quoted" name.txt'],
  ['filename="a;b=c.txt"', 'a;b=c.txt'],
  ['filename=plain.txt', 'plain.txt'],
  ['filename="b\u00fccher.txt"', 'b\u00fccher.txt'],
  ["filename*=UTF-8''b%C3%BCcher.txt", 'b\u00fccher.txt'],
  ['filename*=iso-8859-1\'de\'b%FCcher.txt; filename="other.txt"', 'b\u00fccher.txt'],
  ['FileName="a.txt"', 'a.txt'],
] as const) {
  test(`a file with ${given} is named ${JSON.stringify(filename)}`, () => {
    const form = readMultipart(body(part(`Content-Disposition: form-data; name=f; ${given}`, 'x')), TYPE);
    assert.equal((form['f'] as UploadedFile).filename, filename);
  });
}

test('text before the first boundary, behind the last one, and beside one is skipped', () => {
  const text = `some words\r\n--xx \t\r\n${field('a', '1').slice('--xx\r\n'.length)}--xx--\r\nmore\r\n--xx\r\n`;
  assert.deepEqual(readMultipart(Buffer.from(text), TYPE), { a: '1' });
});

test('a boundary may be quoted, a header may continue in the next line, and content may look like a boundary', () => {
  const text = '--a b\r\ncontent-disposition: form-data;\r\n\tname="a"\r\n\r\nx--a b\r\n --a\r\n--a b--';
  const type = 'multipart/form-data; boundary="a b"';
  assert.deepEqual(readMultipart(Buffer.from(text), type), { a: 'x--a b\r\n --a' });
});

test('a field is read in the charset that its part names; an unknown one is refused', () => {
  const of = (charset: string, byte = 0xfc): Buffer =>
    Buffer.concat([
      Buffer.from(
        `--xx\r\ncontent-disposition: form-data; name="a"\r\ncontent-type: text/plain; charset=${charset}\r\n\r\n`,
      ),
      Buffer.from([byte]),
      Buffer.from('\r\n--xx--'),
    ]);
  assert.deepEqual(readMultipart(of('iso-8859-1'), TYPE), { a: '\u00fc' });
  assert.deepEqual(readMultipart(of('windows-1252', 0x80), TYPE), { a: '€' });
  assert.throws(
    () => readMultipart(of('klingon'), TYPE),
    serveError('SERVE_BAD_BODY', /the charset "klingon" is not supported/),
  );
});

test('a body cut anywhere before its closing boundary is refused, never left waiting', () => {
  const whole = body(field('a', '1'), file('f', 'x.csv', 'content'));
  const closing = whole.length - '\r\n'.length;
  for (let end = 0; end < closing; end += 1) {
    assert.throws(
      () => readMultipart(whole.subarray(0, end), TYPE),
      serveError('SERVE_BAD_BODY', /Unexpected end of multipart data/),
      `cut at ${end}`,
    );
  }
});

test('any damage to a body settles as a form or as SERVE_BAD_BODY', () => {
  const whole = body(field('a', '1'), file('f', 'x.csv', 'content'), field('b', '2'));
  const damage = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 })), {
    maxLength: 6,
  });
  fc.assert(
    fc.property(damage, (changes) => {
      const bytes = Buffer.from(whole);
      for (const [at, byte] of changes) bytes[at] = byte;
      try {
        assert.equal(typeof readMultipart(bytes, TYPE), 'object');
      } catch (error) {
        serveError('SERVE_BAD_BODY', /^The multipart body could not be read: /)(error);
      }
    }),
    { numRuns: 500 },
  );
});
