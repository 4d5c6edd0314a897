import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Format } from '../../../protocol/messages.js';
import { formatOf, readInput } from '../../../worker/formats/read-input.js';
import { callWith } from '../calls.js';
import { serveError } from '../refusals.js';

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
    assert.equal(formatOf(contentType), format satisfies Exclude<Format, 'auto'>);
  });
}

for (const format of ['auto', 'json', 'msgpack', 'multipart', 'bytes'] as const) {
  test(`an empty body is null in format ${format}`, () => {
    assert.equal(readInput(callWith({ format }), Buffer.alloc(0)), null);
  });
}

test('what the dialect fixed wins over the content type', async () => {
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
      readInput(callWith({ format }), bad) as Promise<unknown>,
      serveError('SERVE_BAD_BODY', /MessagePack|multipart/),
    );
  }
});
