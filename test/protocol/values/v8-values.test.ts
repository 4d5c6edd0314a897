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

test('large arrays that stand near the top of a value are no part of what V8 writes and reads', () => {
  const array = new Float32Array(20_000).fill(0.5);
  for (const value of [
    array,
    [array],
    { data: array, dims: [2, 10_000] },
    { scores: { data: new Int8Array(70_000) } },
  ]) {
    const before = structuredClone(value);
    const whole = written(value);
    assert.deepStrictEqual([value, read(whole).value], [before, before]);
    assert.deepEqual([whole[1], whole.readUInt32LE(4) < 200], [1, true]);
  }
});

test('an array that stands in several places comes back as one, and so does what leads to it', () => {
  const array = new Uint8Array(70_000);
  const inner = { array };
  const cyclic: Record<string, unknown> = { array, name: 'cyclic' };
  cyclic['self'] = cyclic;
  for (const value of [
    { one: array, other: array },
    { array, deep: [[[[array]]]] },
    { array, map: new Map([['array', array]]) },
    { one: inner, other: inner },
    { one: inner, deep: [[[[inner]]]] },
    cyclic,
  ]) {
    const got = read(written(value)).value;
    assert.deepStrictEqual(got, value);
    const found = new Set<unknown>();
    const look = (part: unknown, seen: Set<unknown>): void => {
      if (typeof part !== 'object' || part === null || seen.has(part)) return;
      seen.add(part);
      if (ArrayBuffer.isView(part)) found.add(part);
      else for (const next of part instanceof Map ? part.values() : Object.values(part)) look(next, seen);
    };
    look(got, new Set());
    assert.equal(found.size, 1);
  }
});

test('objects around a large array keep the order of their keys, holes, keys of arrays, and a key that is named __proto__', () => {
  const array = new Uint8Array(70_000);
  const own = JSON.parse('{"a":1,"__proto__":{"b":2}}') as Record<string, unknown>;
  const sparse = [, array, 2]; // eslint-disable-line no-sparse-arrays -- a hole is what is tested
  const named = Object.assign([array, , 2], { name: 'named' }); // eslint-disable-line no-sparse-arrays -- as above
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, [i]]));
  for (const value of [
    { z: 1, array, a: { x: array.slice() } },
    { ...own, array },
    sparse,
    named,
    { ...many, array },
  ]) {
    const got = read(written(value)).value as object;
    assert.deepStrictEqual(got, value);
    assert.deepEqual(Object.keys(got), Object.keys(value));
  }
});

test('a getter is called once', () => {
  let calls = 0;
  const counting = {
    get calls(): number {
      return (calls += 1);
    },
  };
  const array = new Uint8Array(70_000);
  for (const value of [counting, [counting], { array, counting }]) read(written(value));
  assert.equal(calls, 3);
});
