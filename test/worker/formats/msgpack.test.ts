import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Packr, Unpackr } from 'msgpackr';
import { readMsgpack, writeMsgpack } from '../../../worker/formats/msgpack.js';
import { serveError } from '../refusals.js';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');

for (const [what, bytes, value] of [
  ['nil', 'c0', null],
  ['a map', '81a16101', { a: 1 }],
  ['an int64 within 2^53 as a number', 'd3001fffffffffffff', Number.MAX_SAFE_INTEGER],
  ['an int64 beyond 2^53 as a BigInt', 'd30020000000000001', 2n ** 53n + 1n],
  ['a negative int64 beyond 2^53 as a BigInt', 'd38000000000000000', -(2n ** 63n)],
  ['the largest uint64 as a BigInt', 'cfffffffffffffffff', 2n ** 64n - 1n],
  ['a timestamp', 'd6ff00000001', new Date(1000)],
  ['a timestamp of 12 bytes', 'c70cff000000000000000000000002', new Date(2000)],
  ['bytes that look like marks', 'c40ac1d40065c7d9dbffc9d8', hex('c1d40065c7d9dbffc9d8')],
  ['text that holds the byte 0xc1 inside a character', 'a2c381', 'Á'],
] as const) {
  test(`readMsgpack reads ${what}`, () => assert.deepEqual(readMsgpack(hex(bytes)), value));
}

for (const [what, bytes] of [
  ['a cut string', 'a5616263'],
  ['a map without its value', '81a161'],
  ['bytes after the value', '0101'],
  ['the byte that is never used', 'c1'],
  ['the byte that is never used, deep inside', '81a16192c3c1'],
  ['an unknown extension', 'd67f00000000'],
  ['an unknown extension, without data', 'd40000'],
  ['an error', 'c70865'.padEnd(22, '92a154a178')],
  ['an expression', 'd57892a178a0'],
  ['a set', 'd47391c0'],
  ['a reference', '92d669000000019101d67000000001'],
  ['an integer of a megabyte', `c900100000${'42'.repeat(0x100001)}`],
  ['an extension inside a map inside a list', '9181a161d6420000000a'],
  ['an extension whose type is missing', '91d4'],
  ['a timestamp of 5 bytes', 'c705ff0000000000'],
  ['a list longer than the body', 'ddffffffff01'],
  ['a string longer than the body', 'dbffffffff61'],
  ['nesting beyond the stack', '91'.repeat(200_000)],
] as const) {
  test(`readMsgpack refuses ${what}, and reads the next body correctly`, () => {
    assert.throws(
      () => readMsgpack(hex(bytes)),
      serveError('SERVE_BAD_BODY', /^The body is not valid MessagePack: /),
    );
    assert.deepEqual(readMsgpack(hex('81a16101')), { a: 1 });
  });
}

test('readMsgpack makes text of the keys of a map', () => {
  assert.deepEqual(readMsgpack(hex('83a161010502c003')), { a: 1, 5: 2, null: 3 });
});

for (const [what, bytes] of [
  ['a list', '819001'],
  ['a map', '818001'],
  ['bytes', '81c4016b01'],
  ['a timestamp', '81d6ff0000000101'],
  ['bytes, further inside', '9181a16181c4016b01'],
] as const) {
  test(`readMsgpack refuses a key of a map that is ${what}`, () => {
    const said = 'a key of a map is a list, a map, bytes or a timestamp.';
    assert.throws(
      () => readMsgpack(hex(bytes)),
      serveError('SERVE_BAD_BODY', new RegExp(`^The body is not valid MessagePack: ${said}$`)),
    );
  });
}

test('readMsgpack does not change prototypes', () => {
  const value = readMsgpack(new Packr({ useRecords: false }).pack(new Map([['__proto__', { admin: true }]])));
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal((value as { admin?: boolean }).admin, undefined);
});

test('binary from readMsgpack is memory of its own: the body may change and it may be seen as floats', () => {
  const body = Buffer.concat([hex('82a16101a162c408'), Buffer.from(new Float32Array([1.5, -2]).buffer)]);
  const { b } = readMsgpack(body) as { b: Uint8Array };
  body.fill(0xff);
  assert.equal(b.buffer.byteLength, 8, 'not a view of a larger buffer');
  assert.deepEqual([...new Float32Array(b.buffer, b.byteOffset, 2)], [1.5, -2]);
});

test('readMsgpack turns any bytes into a value or SERVE_BAD_BODY', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        readMsgpack(Buffer.from(bytes));
      } catch (error) {
        serveError('SERVE_BAD_BODY', /^The body is not valid MessagePack: /)(error);
      }
    }),
    { numRuns: 2000 },
  );
});

/** Reads as another MessagePack library would: no extensions. */
const plain = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'bigint' });

for (const [what, value, expected] of [
  ['undefined as nil', undefined, null],
  ['bytes as binary', { b: new Uint8Array([1, 2]) }, { b: Buffer.from([1, 2]) }],
  ['a nested typed array as a list', { v: new Float32Array([0.5, 1]) }, { v: [0.5, 1] }],
  ['a BigInt beyond 2^53 in full', { n: 2n ** 62n }, { n: 2n ** 62n }],
  ['a date as its text', { d: new Date(0) }, { d: '1970-01-01T00:00:00.000Z' }],
] as const) {
  test(`writeMsgpack writes ${what}`, () => {
    assert.deepEqual(plain.unpack(writeMsgpack(value)), expected);
  });
}

test('writeMsgpack writes half of a character in two as U+FFFD, in texts of any length and in names', () => {
  for (const text of ['', 'ä'.repeat(10), 'x'.repeat(1000)]) {
    const written = writeMsgpack({ [`${text}\ud800`]: [`${text}\udc00😀`] });
    assert.deepEqual(plain.unpack(written), { [`${text}\ufffd`]: [`${text}\ufffd😀`] });
  }
});

test('writeMsgpack gives memory of its own: a later answer does not change an earlier one', () => {
  const first = writeMsgpack({ text: 'first' });
  const before = first.toString('hex');
  for (let i = 0; i < 100; i += 1) writeMsgpack({ text: 'x'.repeat(500) });
  assert.equal(first.toString('hex'), before);
});

test('every JSON value comes back the same through writeMsgpack and readMsgpack', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const sent = JSON.parse(JSON.stringify(value).replaceAll('"__proto__"', '"proto"')) as unknown;
      assert.deepEqual(readMsgpack(writeMsgpack(sent)), sent);
    }),
  );
});
