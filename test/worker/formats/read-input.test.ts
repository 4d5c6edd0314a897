import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { LOADED_FORMATS } from '../../../worker/formats/index.js';
import { formatOf, readInput } from '../../../worker/formats/read-input.js';
import { callWith } from '../calls.js';
import { serveError } from '../refusals.js';
import { nodeFormats } from './node-formats.js';

for (const [contentType, format] of [
  ['', 'json'],
  ['application/json', 'json'],
  ['application/json; charset=utf-8', 'json'],
  ['Application/JSON', 'json'],
  [' application/json ;x=y', 'json'],
  ['application/vnd.api+json', 'json'],
  ['text/plain', 'json'],
  ['text/html; charset=utf-8', 'json'],
  ['application/x-www-form-urlencoded', 'json'],
  ['application/msgpack', 'msgpack'],
  ['application/x-msgpack', 'msgpack'],
  ['application/vnd.msgpack', 'msgpack'],
  ['multipart/form-data; boundary=x', 'multipart'],
  ['application/octet-stream', 'bytes'],
  ['image/png', 'bytes'],
  ['multipart/mixed; boundary=x', 'bytes'],
  ['nonsense', 'bytes'],
] as const) {
  test(`a body of type ${JSON.stringify(contentType)} is read as ${format}`, () => {
    assert.equal(formatOf(contentType), format);
  });
}

const formats = Object.entries(await nodeFormats());
const ownFormats = formats.filter(([, format]) => 'exchange' in format).map(([name]) => name);

for (const format of ['auto', ...formats.map(([name]) => name)].filter(
  (name) => !ownFormats.includes(name),
)) {
  test(`an empty body is null in format ${format}`, async () => {
    assert.equal(await readInput(callWith({ format }), Buffer.alloc(0)), null);
  });
}

test('a format that the dialect fixed wins over the content type', async () => {
  const body = Buffer.from('81a16101', 'hex');
  assert.deepEqual(await readInput(callWith({ format: 'msgpack', contentType: 'application/json' }), body), {
    a: 1,
  });
  const bytes = readInput(callWith({ format: 'bytes', contentType: 'application/json' }), body);
  assert.equal(Buffer.from(bytes as Uint8Array).toString('hex'), '81a16101');
});

test('auto reads by content type', async () => {
  const form = Buffer.from('--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--x--');
  const contentType = 'multipart/form-data; boundary=x';
  assert.deepEqual(await readInput(callWith({ contentType }), form), { a: '1' });
});

test('bytes are a copy in memory of their own, whatever buffer the body lay in', () => {
  const chunk = Buffer.from('....abcd....');
  const input = readInput(callWith({ format: 'bytes' }), chunk.subarray(4, 8)) as Uint8Array;
  chunk.fill(0);
  assert.ok(input instanceof Uint8Array);
  assert.equal(Buffer.from(input).toString(), 'abcd');
  assert.equal(input.buffer.byteLength, 4);
});

test('a malformed body is refused with SERVE_BAD_BODY, thrown or rejected as the format is read', async () => {
  const bad = Buffer.from([0xc1]);
  assert.throws(() => readInput(callWith({ format: 'json' }), bad), serveError('SERVE_BAD_BODY', /JSON/));
  for (const format of ['msgpack', 'multipart'] as const) {
    await assert.rejects(
      async () => {
        await readInput(callWith({ format }), bad);
      },
      serveError('SERVE_BAD_BODY', /MessagePack|multipart/),
    );
  }
});

test('a format may refuse a body with any code and status, at once or later', async () => {
  const refusal = new ServeError('SERVE_BAD_REQUEST', 'Not this one.', { status: 422, kind: 'input' });
  const atOnce = (): never => {
    throw refusal;
  };
  LOADED_FORMATS.set('refuses', { read: atOnce });
  LOADED_FORMATS.set('refuses-later', { read: () => Promise.reject(refusal) });
  LOADED_FORMATS.set('refuses-in-exchange', { exchange: () => ({ read: atOnce, write: (reply) => reply }) });
  for (const format of ['refuses', 'refuses-later', 'refuses-in-exchange'])
    await assert.rejects(async () => await readInput(callWith({ format }), Buffer.from('x')), {
      code: 'SERVE_BAD_BODY',
      message: 'Not this one.',
      status: 422,
      kind: 'input',
    });
  for (const name of ['refuses', 'refuses-later', 'refuses-in-exchange']) LOADED_FORMATS.delete(name);
});

test("a refusal in the app's name and a bug of a format stay what they are", () => {
  for (const thrown of [new ServeError('SERVE_HTTP_ERROR', 'No.', { status: 409 }), new TypeError('a bug')]) {
    const read = (): never => {
      throw thrown;
    };
    LOADED_FORMATS.set('throws', { read });
    assert.throws(
      () => readInput(callWith({ format: 'throws' }), Buffer.from('x')),
      (error) => error === thrown,
    );
  }
  LOADED_FORMATS.delete('throws');
});

for (const [contentType, body, option] of [
  ['application/x-www-form-urlencoded', '{"a":1', 'forms: true'],
  ['application/x-www-form-urlencoded', 'a=1', 'forms: true'],
  ['text/plain; charset=utf-8', 'hello', 'text: true'],
] as const) {
  test(`${body} as ${contentType} is refused, and the message names ${option}`, () => {
    const refusal = serveError('SERVE_BAD_BODY', new RegExp(`not valid JSON.*\\. .*\`${option}\`\\.$`));
    assert.throws(() => readInput(callWith({ contentType }), Buffer.from(body)), refusal);
  });
}

test('a dialect that takes only JSON does not mention forms', () => {
  const call = callWith({ format: 'json', contentType: 'text/plain' });
  assert.throws(
    () => readInput(call, Buffer.from('x')),
    (error: Error) => !error.message.includes('text: true'),
  );
});

const FORM = 'application/x-www-form-urlencoded';
const WISHES = { forms: true, text: true };

for (const [contentType, body, input] of [
  [FORM, 'a=1&b=x+y%20%C3%BC&a=2&c', { a: ['1', '2'], b: 'x y \u00fc', c: '' }],
  [FORM, '{"a":1}', { '{"a":1}': '' }],
  [`${FORM}; charset=utf-8`, '__proto__=1&100%', JSON.parse('{"__proto__":"1","100%":""}')],
  ['text/plain', '{"a":1}', '{"a":1}'],
  ['text/csv; charset=utf-8', '\ufeffa,b', 'a,b'],
  ['application/json', '{"a":1}', { a: 1 }],
  ['', '1', 1],
] as const) {
  test(`an app that asks for forms and text reads ${body} as ${contentType || 'no type'}`, () => {
    assert.deepEqual(readInput(callWith({ contentType }), Buffer.from(body), WISHES), input);
  });
}

test('text is read in the charset of its content type, and an unknown charset is refused', () => {
  const latin1 = Buffer.from([0xfc]);
  const input = readInput(callWith({ contentType: 'text/plain; charset=iso-8859-1' }), latin1, WISHES);
  assert.equal(input, '\u00fc');
  for (const [type, said] of [
    ['text/plain', /^The body is not text in "utf-8"\.$/],
    ['text/plain; charset=klingon', /^The body is not text in "klingon"\.$/],
  ] as const)
    assert.throws(
      () => readInput(callWith({ contentType: type }), latin1, WISHES),
      serveError('SERVE_BAD_BODY', said),
    );
});

test('text in Windows’ Latin, by any of its names, has the letters that browsers read there', () => {
  const bytes = Buffer.from([0x80, 0x81, 0x93, 0x9f, 0xe4]);
  for (const charset of ['windows-1252', 'iso-8859-1', 'Latin1', 'us-ascii']) {
    const contentType = `text/plain; charset=${charset}`;
    assert.equal(readInput(callWith({ contentType }), bytes, WISHES), '€\x81“Ÿä', charset);
  }
});

test('forms and text are asked for one by one', () => {
  const text = callWith({ contentType: 'text/plain' });
  assert.throws(() => readInput(text, Buffer.from('x'), { forms: true, text: false }));
  assert.equal(readInput(text, Buffer.from('x'), { forms: false, text: true }), 'x');
});
