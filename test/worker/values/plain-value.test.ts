import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainValue } from '../../../worker/values/plain-value.js';
import { serveError } from '../refusals.js';

const bytes = new Uint8Array([1, 2]);

for (const [what, value, plain] of [
  ['bytes as they are', bytes, bytes],
  ['a float array as a list', new Float32Array([0.5]), [0.5]],
  ['a BigInt64Array as a list', { a: new BigInt64Array([5n]) }, { a: [5n] }],
  ['a signed BigInt of 64 bits as it is', -(2n ** 63n), -(2n ** 63n)],
  ['an unsigned BigInt of 64 bits as it is', 2n ** 64n - 1n, 2n ** 64n - 1n],
  ['an ArrayBuffer as bytes', [bytes.buffer, new DataView(bytes.buffer)], [bytes, bytes]],
  ['a Date as its text', [new Date(0)], ['1970-01-01T00:00:00.000Z']],
  ['what toJSON gives', { toJSON: () => ({ n: new Float32Array([1]) }) }, { n: [1] }],
  ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
  ['an error with a toJSON of its own', Object.assign(new Error('e'), { toJSON: () => 'e' }), 'e'],
] as const) {
  test(`plainValue gives ${what}`, () => assert.deepEqual(plainValue(value), plain));
}

const cycle: Record<string, unknown> = {};
cycle['self'] = [cycle];

for (const [what, value, message] of [
  ['a cycle', cycle, /output\.self\[0\] refers back/],
  ['a forgotten await', { p: Promise.resolve() }, /output\.p is a promise; await it/],
  ['a Map', { m: [new Map()] }, /output\.m\[0\] is a Map; return Object\.fromEntries\(map\)/],
  ['a Set', new Set(), /output is a Set/],
  ['a symbol', { s: Symbol('s') }, /output\.s is a symbol/],
  ['a function', { f: () => 1 }, /output\.f is a function/],
  ['a nested error', { e: new Error('e') }, /output\.e is an Error/],
  ['an integer beyond 64 bits', { n: 2n ** 64n }, /output\.n is a BigInt beyond/],
] as const) {
  test(`plainValue refuses ${what} and names its place`, () => {
    assert.throws(() => plainValue(value), serveError('SERVE_OUTPUT_INVALID', message));
    assert.throws(
      () => plainValue(value),
      serveError('SERVE_OUTPUT_INVALID', /^The output is not MessagePack: /),
    );
  });
}

test('plainValue names the integer that is too long, not one before it that fits', () => {
  const value = { fits: 2n ** 60n, tooLong: 2n ** 70n };
  assert.throws(
    () => plainValue(value),
    serveError('SERVE_OUTPUT_INVALID', /output\.tooLong is a BigInt beyond 64 bits/),
  );
});

test('plainValue refuses an output nested beyond the stack', () => {
  let deep: unknown = 1;
  for (let depth = 0; depth < 20_000; depth += 1) deep = [deep];
  assert.throws(() => plainValue(deep), serveError('SERVE_OUTPUT_INVALID', /nested too deeply/));
});
