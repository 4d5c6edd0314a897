/** Values of programs as V8 writes them: large arrays stand behind them; what it does not write is an error that says where it is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { V8_VALUES } from '../../../protocol/values/v8-values.js';
import { nested } from './nested.js';

const { read, write } = V8_VALUES;
const written = (value: unknown): Buffer => write(value, 'input', 'SERVE_BAD_BODY');

test('a value that is nested too deep is refused, and does not end the process', () => {
  assert.throws(() => written({ list: nested(20_000) }), {
    code: 'SERVE_BAD_BODY',
    message: /input\.list\[0\]\[0\].*… is nested more than 1000 levels deep\.$/,
  });
  assert.deepStrictEqual(read(written(nested(500))).value, nested(500));
});

test('large arrays of any class stand behind the value in memory that may be lent, and stay what they are', () => {
  const bytes = Uint8Array.from({ length: 80_011 }, (_, i) => i);
  const { buffer } = bytes;
  const shared = new Uint8Array(new SharedArrayBuffer(70_000)).fill(7);
  const value = {
    odd: bytes.subarray(1),
    floats: new Float32Array(buffer, 4, 20_000),
    small: bytes.subarray(3, 6),
    buffer: Buffer.from(buffer, 3, 70_003),
    bigints: new BigInt64Array(buffer, 0, 10_000),
    view: new DataView(buffer, 1, 79_000),
    text: 'x'.repeat(100_000),
    again: [new Map([['floats', new Float64Array(buffer, 8, 9000)]])],
  };
  const lent: number[] = [];
  const allocate = (count: number): Buffer => {
    lent.push(count);
    return Buffer.allocUnsafeSlow(count);
  };
  const whole = write({ ...value, shared }, 'input', 'SERVE_BAD_BODY', allocate);
  assert.deepEqual(lent, [whole.length]);
  const got = read(whole);
  assert.deepStrictEqual(got, { value: { ...value, shared: Uint8Array.from(shared) }, hasViews: true });
  const cut = read.bind(null, whole.subarray(0, whole.length - 1000));
  assert.throws(cut, { code: 'SERVE_BAD_BODY' });
});

test('a value without large arrays is what V8 writes', () => {
  const value = {
    list: [1n, undefined],
    small: new Uint16Array([1, 2]),
    view: new DataView(new ArrayBuffer(3), 1),
  };
  assert.deepStrictEqual(read(written(value)), { value, hasViews: false });
  assert.equal(written('text')[0], 0xff);
});
