/** Values of programs as MessagePack: every form that a writer may choose is read, and what is broken is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pack } from 'msgpackr';
import { MSGPACK_VALUES } from '../../../protocol/values/msgpack-values.js';
import { Tensor } from '../../../protocol/values/tensor.js';
import { nested } from './nested.js';

const { read, write } = MSGPACK_VALUES;
const written = (value: unknown): Buffer => write(value, 'input', 'SERVE_BAD_BODY');

test('it reads every form of other writers', () => {
  for (const value of [
    [0, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32, 2 ** 53 - 1],
    [-1, -32, -33, -128, -129, -32_768, -32_769, -(2 ** 31), -(2 ** 40)],
    [0.5, NaN, Infinity, null, true, false],
    ['', 'é', 'x'.repeat(31), 'x'.repeat(32), 'x'.repeat(300), 'x'.repeat(70_000)],
    [Array(15).fill(1), Array(16).fill(1), Array(70_000).fill(1)],
    Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, i])),
  ]) {
    assert.deepStrictEqual(read(pack(value)).value, value);
    assert.deepStrictEqual(read(written(value)).value, value);
  }
  assert.deepStrictEqual(read(written(-0)).value, -0);
  assert.deepStrictEqual(read(pack(2n ** 60n)).value, 2n ** 60n);
  assert.deepStrictEqual(read(Buffer.from('ca3f000000', 'hex')).value, 0.5);
});

test('values of any length are written whole', () => {
  for (const part of [0, 200, 0.5, 1e12, 2n ** 60n, 'text', new Date(5), new Uint8Array(2), [], {}, null])
    for (let length = 40; length < 70; length += 1) {
      const value = Array<unknown>(length).fill(part);
      assert.deepStrictEqual(read(written(value)).value, value);
    }
});

test('any name is a field of its own', () => {
  const value: unknown = JSON.parse('{"__proto__":{"a":1}}');
  assert.deepEqual(Object.keys(read(written(value)).value as object), ['__proto__']);
});

test('dates come back with their milliseconds, also those before 1970', () => {
  for (const date of [new Date(0), new Date(1_700_000_000_123), new Date(-1)])
    assert.deepStrictEqual(read(written(date)).value, date);
});

test('tensors have memory of their own', () => {
  const value = [new Tensor('FP16', [1, 2], new Uint16Array([1, 2])), new Tensor('BYTES', [0], [])];
  const bytes = written(value);
  const read1 = read(bytes).value;
  bytes.fill(0);
  assert.deepStrictEqual(read1, value);
});

test('bytes that end too early, or are none, are refused', () => {
  const whole = written([new Float32Array(2), 'text', 1.5, new Uint8Array(3), { a: 1 }]);
  for (let end = 0; end < whole.length; end += 1)
    assert.throws(() => read(whole.subarray(0, end)), { code: 'SERVE_BAD_BODY' });
  for (const [hex, text] of [
    ['c1', /byte 0xc1 is never used/],
    ['d40500', /extension type 5 is not supported/],
    ['c70901a44650333291020000', /2 bytes are no FP32 of the shape \[2\]/],
  ] as const)
    assert.throws(() => read(Buffer.from(hex, 'hex')), { code: 'SERVE_BAD_BODY', message: text });
});

test('a value is written as deep as the worker in Python reads it, and no deeper', () => {
  assert.deepStrictEqual(read(written(nested(128))).value, nested(128));
  assert.throws(() => written(nested(129)), {
    message: /input is nested more than 128 levels deep, or contains itself\.$/,
  });
});
