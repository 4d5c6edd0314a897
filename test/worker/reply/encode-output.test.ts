import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeJson } from '../../../worker/formats/json.js';
import { encodeOutput } from '../../../worker/reply/encode-output.js';
import { callWith } from '../calls.js';
import { serveError } from '../refusals.js';

for (const [what, value, accept, contentType, hex] of [
  ['bytes', new Uint8Array([1, 2]), '*/*', 'application/octet-stream', '0102'],
  ['bytes, whatever is accepted', Buffer.from([3]), 'application/msgpack', 'application/octet-stream', '03'],
  ['an ArrayBuffer', new Uint8Array([4]).buffer, '*/*', 'application/octet-stream', '04'],
  ['a Blob', new Blob(['hi'], { type: 'image/png' }), 'application/msgpack', 'image/png', '6869'],
  ['a Blob without a type', new Blob([new Uint8Array([5])]), '*/*', 'application/octet-stream', '05'],
  ['a value', { a: 1 }, '*/*', 'application/json', Buffer.from('{"a":1}').toString('hex')],
  ['nothing', undefined, '', 'application/json', Buffer.from('null').toString('hex')],
  ['a string', 'hi', 'text/plain', 'application/json', Buffer.from('"hi"').toString('hex')],
  ['a value for a client of msgpack', { a: 1 }, 'application/msgpack', 'application/msgpack', '81a16101'],
  ['a value for one of x-msgpack', 5, 'application/x-msgpack', 'application/x-msgpack', '05'],
  ['a value for one of vnd.msgpack', 5, '*/*, application/vnd.msgpack', 'application/vnd.msgpack', '05'],
  [
    'a value for one that likes msgpack as well',
    5,
    'application/json, Application/MsgPack',
    'application/msgpack',
    '05',
  ],
  [
    'a value for one that likes JSON better',
    5,
    'application/json, application/msgpack;q=0.5',
    'application/json',
    '35',
  ],
] as const) {
  test(`${what} becomes ${contentType} (Accept: ${accept})`, async () => {
    const encoded = await encodeOutput(value, callWith({ accept }));
    assert.equal(encoded.contentType, contentType);
    assert.equal(Buffer.from(encoded.body).toString('hex'), hex);
  });
}

test('a Blob with a type that is too long for any client is refused', async () => {
  const blob = new Blob(['x'], { type: `text/${'x'.repeat(100_000)}` });
  await assert.rejects(
    Promise.resolve(encodeOutput(blob, callWith())),
    serveError('SERVE_OUTPUT_INVALID', /headers are 100005 characters/),
  );
});

test('JSON and bytes are encoded without a promise: a short call stays in one turn', () => {
  assert.ok(!(encodeOutput({ a: 1 }, callWith()) instanceof Promise));
  assert.ok(!(encodeOutput(new Uint8Array(1), callWith()) instanceof Promise));
});

test('answers of 40 calls that are encoded before the first of them is sent stay as they are', async () => {
  const numbers = Array.from({ length: 40 }, (_, i) => i);
  const encoded = await Promise.all(numbers.map(async (i) => encodeOutput({ i }, callWith())));
  const texts = encoded.map(({ body }) => Buffer.from(body).toString());
  assert.deepEqual(
    texts,
    numbers.map((i) => `{"i":${i}}`),
  );
});

const NOT_ASCII = { a: 'é 漢 \u{1f34c}', ключ: 1 };
const ESCAPED = String.raw`{"a":"\u00e9 \u6f22 \ud83c\udf4c","\u043a\u043b\u044e\u0447":1}`;

for (const [what, asciiJson, text] of [
  ['a call that asks for ASCII', true, ESCAPED],
  ['any other call', false, JSON.stringify(NOT_ASCII)],
] as const) {
  test(`JSON for ${what} is ${text === ESCAPED ? 'ASCII only' : 'UTF-8'}`, async () => {
    const call = callWith({ asciiJson });
    for (const encoded of [await encodeOutput(NOT_ASCII, call), writeJson(NOT_ASCII, call)])
      assert.equal(Buffer.from(encoded.body).toString(), text);
    assert.deepEqual(JSON.parse(text), NOT_ASCII);
  });
}

test('a megabyte that is not ASCII comes out whole as ASCII', () => {
  const value = 'é'.repeat(1_000_000);
  const { body } = writeJson(value, callWith({ asciiJson: true }));
  assert.equal(body.length, 6_000_002);
  assert.equal(JSON.parse(Buffer.from(body).toString('latin1')), value);
});
