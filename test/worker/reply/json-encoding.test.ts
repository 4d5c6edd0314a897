import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeJson } from '../../../worker/reply/json-encoding.js';
import { serveError } from '../refusals.js';

const text = (value: unknown): string => encodeJson(value).toString();

for (const [what, value, json] of [
  ['undefined', undefined, 'null'],
  ['null', null, 'null'],
  ['text outside ASCII', 'é😀', '"é😀"'],
  [
    'NaN and the infinities',
    [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    '[null,null,null]',
  ],
  ['undefined in a list', [undefined], '[null]'],
  ['an undefined property', { a: undefined, b: 1 }, '{"b":1}'],
  ['a nested typed array', { v: new Float32Array([0.5, 1]) }, '{"v":[0.5,1]}'],
  ['a typed array at the top', new Float64Array([0.1]), '[0.1]'],
  ['a typed array with NaN', { v: new Float32Array([1, Number.NaN]) }, '{"v":[1,null]}'],
  ['an empty typed array', [new Int8Array(0)], '[[]]'],
  ['every kind of typed array', typedArrays(), JSON.stringify(Array.from({ length: 9 }, () => [1, 2]))],
  ['a nested Buffer', { b: Buffer.from([1, 2]) }, '{"b":[1,2]}'],
  ['a BigInt within 2^53', { n: 2n ** 53n - 1n }, '{"n":9007199254740991}'],
  ['a negative BigInt within 2^53', [-(2n ** 53n - 1n)], '[-9007199254740991]'],
  ['a BigInt at the top', 5n, '5'],
  ['a BigInt64Array within 2^53', { ids: new BigInt64Array([1n, -2n]) }, '{"ids":[1,-2]}'],
  ['a Map', new Map<string, unknown>([['a', new Map([['b', 1]])]]), '{"a":{"b":1}}'],
  ['a Map with numbers as keys', new Map([[1, 'x']]), '{"1":"x"}'],
  ['a Set', { s: new Set(['x', 2n]) }, '{"s":["x",2]}'],
  ['a Date', { d: new Date(0) }, '{"d":"1970-01-01T00:00:00.000Z"}'],
  ['an object with its own toJSON', { v: { toJSON: () => 'mine' } }, '{"v":"mine"}'],
  ['the same object twice', sameTwice(), '[{"a":1},{"a":1}]'],
  ['a boxed string', [Object('x')], '["x"]'],
] as const) {
  test(`encodeJson writes ${what}`, () => assert.equal(text(value), json));
}

function typedArrays(): unknown[] {
  const kinds = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array];
  return [...kinds.map((kind) => new kind([1, 2])), new Float32Array([1, 2]), new BigUint64Array([1n, 2n])];
}

function sameTwice(): unknown[] {
  const one = { a: 1 };
  return [one, one];
}

function cyclic(): unknown {
  const parent: Record<string, unknown> = { children: [{}] };
  (parent['children'] as Record<string, unknown>[])[0]!['parent'] = parent;
  return parent;
}

const throwing = {
  get broken(): never {
    throw new Error('no GPU');
  },
};

for (const [what, value, message] of [
  [
    'a BigInt beyond 2^53',
    { items: [{ id: 1 }, { id: 2n ** 53n }] },
    /output\.items\[1\]\.id is a BigInt beyond 2\^53 - 1; return it as a string/,
  ],
  [
    'a BigInt64Array beyond 2^53',
    { ids: new BigInt64Array([1n, 2n ** 60n]) },
    /output\.ids\[1\] is a BigInt beyond/,
  ],
  ['a BigInt beyond 2^53 at the top', 2n ** 64n, /output is a BigInt beyond/],
  ['a BigInt beyond 2^53 in a Map', new Map([['k', 2n ** 64n]]), /output\.k is a BigInt beyond/],
  ['a BigInt beyond 2^53 in a Set', new Set([1n, 2n ** 64n]), /output\[1\] is a BigInt beyond/],
  ['a BigInt beyond 2^53 under an odd name', { 'a b': 2n ** 64n }, /output\["a b"\] is a BigInt beyond/],
  ['a cycle', cyclic(), /output\.children\[0\]\.parent refers back to an object that contains it/],
  ['a forgotten await', { label: Promise.resolve('cat') }, /output\.label is a promise; await it/],
  ['a getter that throws', { a: throwing }, /output\.a\.broken throws when read: no GPU/],
  [
    'a toJSON that throws',
    {
      toJSON: () => {
        throw new Error('not today');
      },
    },
    /not today/,
  ],
  ['a function', () => 1, /it is a function/],
  ['a symbol', Symbol('x'), /it is a symbol/],
] as const) {
  test(`encodeJson refuses ${what} and says where it is`, () => {
    assert.throws(() => encodeJson(value), serveError('SERVE_OUTPUT_INVALID', message));
    assert.throws(
      () => encodeJson(value),
      serveError('SERVE_OUTPUT_INVALID', /^The output is not JSON: .*\.$/),
    );
  });
}

test("outside encodeJson the app's own JSON.stringify means what Node means, also after a failure", () => {
  assert.throws(() => encodeJson({ n: 2n ** 64n }));
  encodeJson({ v: new Float32Array([1]), b: Buffer.from('a'), m: new Map(), s: new Set(), n: 1n });
  assert.equal(JSON.stringify(new Float32Array([1, 2])), '{"0":1,"1":2}');
  assert.equal(JSON.stringify(Buffer.from([1])), '{"type":"Buffer","data":[1]}');
  assert.equal(JSON.stringify([new Map([['a', 1]]), new Set([1]), Promise.resolve()]), '[{},{},{}]');
  assert.throws(() => JSON.stringify(1n), TypeError);
  assert.equal((BigInt.prototype as { toJSON?: unknown }).toJSON, undefined);
});

test('encodeJson adds nothing that a loop over an object would meet', () => {
  for (const value of [new Map(), new Set(), new Float32Array(1), Buffer.alloc(1), Promise.resolve()]) {
    const keys: string[] = [];
    for (const key in value as object) keys.push(key);
    assert.ok(!keys.includes('toJSON'), value.constructor.name);
  }
});

interface WithToJson {
  toJSON?: unknown;
}

test('a toJSON that the app gives one object, or its own class, wins', () => {
  const map = new Map([['a', 1]]) as Map<string, number> & WithToJson;
  map.toJSON = () => 'one map';
  assert.equal(text([map]), '["one map"]');
  assert.equal(JSON.stringify([map]), '["one map"]');
  assert.deepEqual(Object.keys(map), ['toJSON'], 'an assignment makes a plain property, as ever');

  class Tensor extends Float32Array {
    toJSON(): string {
      return 'a tensor';
    }
  }
  assert.equal(text({ t: new Tensor(2) }), '{"t":"a tensor"}');

  class Late extends Set {}
  (Late.prototype as WithToJson).toJSON = () => 'late';
  assert.equal(text(new Late()), '"late"');
  assert.equal(text(new Set([1])), '[1]');
});

test('the common `BigInt.prototype.toJSON = …` of an app wins, at any time', () => {
  const prototype = BigInt.prototype as WithToJson;
  const before = Object.getOwnPropertyDescriptor(prototype, 'toJSON') as PropertyDescriptor;
  try {
    prototype.toJSON = function (this: bigint) {
      return this.toString();
    };
    assert.equal(text({ n: 2n ** 64n }), '{"n":"18446744073709551616"}');
    assert.equal(JSON.stringify(1n), '"1"');
  } finally {
    Object.defineProperty(prototype, 'toJSON', before);
  }
  assert.equal(text(1n), '1');
});

test('encodeJson agrees with JSON.stringify on whatever JSON can say', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.equal(text(value), JSON.stringify(value));
    }),
  );
});

test('encodeJson on any value gives JSON or SERVE_OUTPUT_INVALID', () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
  });
  fc.assert(
    fc.property(anything, (value) => {
      try {
        JSON.parse(text(value));
      } catch (error) {
        serveError('SERVE_OUTPUT_INVALID', /^The output is not JSON: /)(error);
      }
    }),
    { numRuns: 500 },
  );
});
