import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ServeError } from '../../../protocol/errors.js';
import { writeHintsTo } from '../../../worker/process/hint-once.js';
import { encodeJson } from '../../../worker/values/json-encoding.js';
import { serveError } from '../refusals.js';

for (const [value, place] of [
  [{ a: [1, 2], scores: [0.5, Number.NaN, Number.POSITIVE_INFINITY] }, 'output.scores[1]'],
  [{ v: new Float32Array([1, Number.NaN]) }, 'output.v[1]'],
  [Number.NEGATIVE_INFINITY, 'output'],
  [{ s: [Symbol.iterator.description, { 'a b': Number.NaN }] }, 'output.s[1]["a b"]'],
  [{ d: { toJSON: () => [Number.NaN] } }, 'a number in the output'],
] as const) {
  test(`a number that JSON does not have, at ${place}, is named once`, () => {
    const lines: string[] = [];
    writeHintsTo((line) => lines.push(line));
    for (let i = 0; i < 2; i += 1) encodeJson(value);
    assert.equal(lines.length, 1);
    assert.ok(lines[0]?.startsWith(`${place} is not a finite number; `), lines[0]);
  });
}

test('values whose numbers JSON has get no line', () => {
  const lines: string[] = [];
  writeHintsTo((line) => lines.push(line));
  for (const value of [1, [1.5, -0], new Float64Array([1]), { at: new Date(0), n: 5n, none: null }])
    encodeJson(value);
  assert.deepEqual(lines, []);
});

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
  ['an ArrayBuffer and a DataView', [bytesOf(1, 2), new DataView(bytesOf(3))], '[[1,2],[3]]'],
  ['an object with a symbol as a key', { [Symbol('k')]: 1, a: 1 }, '{"a":1}'],
  ['methods of a class, and what only a prototype has', inherits(), '{"own":1}'],
  ['a toJSON that returns its own object', selfGiven(), '{"a":1}'],
  ['a Date', { d: new Date(0) }, '{"d":"1970-01-01T00:00:00.000Z"}'],
  ['an object with its own toJSON', { v: { toJSON: () => 'mine' } }, '{"v":"mine"}'],
  ['the same object twice', sameTwice(), '[{"a":1},{"a":1}]'],
  ['a boxed string', [Object('x')], '["x"]'],
] as const) {
  test(`encodeJson writes ${what}`, () => assert.equal(text(value), json));
}

function bytesOf(...bytes: number[]): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}

/** An object whose prototype has a symbol and a cycle, which encoders must ignore. */
function inherits(): object {
  const prototype: Record<string, unknown> = { symbol: Symbol('inherited'), method() {} };
  prototype['cycle'] = prototype;
  return Object.assign(Object.create(prototype) as object, { own: 1 });
}

function selfGiven(): object {
  return {
    a: 1,
    toJSON() {
      const { a } = this as { a: number };
      return { a };
    },
  };
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

function throwText(text: string): never {
  throw text as unknown as Error;
}

function* numbers(): Generator<number> {
  yield 1;
}

async function* events(): AsyncGenerator<number> {
  yield Promise.resolve(1);
}

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
  ['a BigInt beyond 2^53 under an odd name', { 'a b': 2n ** 64n }, /output\["a b"\] is a BigInt beyond/],
  ['a cycle', cyclic(), /output\.children\[0\]\.parent refers back to an object that contains it/],
  ['a forgotten await', { label: Promise.resolve('cat') }, /output\.label is a promise; await it/],
  ['a getter that throws', { a: throwing }, /output\.a\.broken throws an Error when read\.$/],
  [
    'a toJSON that throws',
    {
      toJSON: () => {
        throw new Error('not today');
      },
    },
    /output\.toJSON\(\) throws an Error\.$/,
  ],
  [
    'a toJSON that throws no error',
    { a: { toJSON: () => throwText('gone') } },
    /output\.a\.toJSON\(\) throws a value that is not an Error\.$/,
  ],
  ['a Map', new Map([['a', 1]]), /output is a Map; return Object\.fromEntries\(map\)/],
  ['a nested Map', { rows: [{ by: new Map() }] }, /output\.rows\[0\]\.by is a Map; return/],
  ['a Set', { tags: new Set(['x']) }, /output\.tags is a Set; return \[\.\.\.set\]/],
  ['a Map given by a toJSON', { a: { toJSON: () => ({ m: new Map() }) } }, /output\.a\.m is a Map/],
  ['a WeakMap', { cache: new WeakMap() }, /output\.cache is a WeakMap/],
  ['a symbol', Symbol('x'), /output is a symbol; return its description/],
  ['a nested symbol', { rows: [{ ok: 1 }, { kind: Symbol('cat') }] }, /output\.rows\[1\]\.kind is a symbol/],
  ['a symbol in a list', { list: ['a', Symbol('b')] }, /output\.list\[1\] is a symbol/],
  ['a function', () => 1, /output is a function; call it, or leave it out/],
  ['a nested function', { label: () => 'cat' }, /output\.label is a function; call it/],
  ['a class', [class {}], /output\[0\] is a function/],
  [
    'a nested error',
    { error: new TypeError('bad') },
    /output\.error is an Error; return its message, or throw it/,
  ],
  ['a nested Blob', { image: new Blob(['x']) }, /output\.image is a Blob; return its bytes/],
  ['a nested generator', { rows: numbers() }, /output\.rows is an iterator; return \[\.\.\.iterator\]/],
  ['a nested async generator', { rows: events() }, /output\.rows is an iterator; return what it yields/],
] as const) {
  test(`encodeJson refuses ${what} and names its place`, () => {
    assert.throws(() => encodeJson(value), serveError('SERVE_OUTPUT_INVALID', message));
    assert.throws(
      () => encodeJson(value),
      serveError('SERVE_OUTPUT_INVALID', /^The output is not JSON: .*\.$/),
    );
  });
}

test('an error of a getter is for the log only: the message names its class, the detail has its stack', () => {
  assert.throws(
    () => encodeJson({ a: throwing }),
    ({ message, detail }: ServeError) =>
      !message.includes('no GPU') && /Error: no GPU\n +at .*json-encoding/.test(detail),
  );
});

test('the stack of an error of a getter has the frames of the app, without those of the server and of Node', () => {
  const own = new URL('../../../worker/formats/json.js', import.meta.url).href;
  const thrown = Object.assign(new Error('no GPU'), {
    stack: `Error: no GPU\n    at get broken (/app/app.ts:3:9)\n    at encode (${own}:9:1)\n    at node:internal/x:1:1`,
  });
  const output = {
    get broken() {
      throw thrown;
    },
  };
  assert.throws(
    () => encodeJson(output),
    ({ detail }: ServeError) => detail.endsWith('\nError: no GPU\n    at get broken (/app/app.ts:3:9)'),
  );
});

test('an encoder that fails for an unknown reason names the kind of error without any text of the app', () => {
  let reads = 0;
  const fickle = {
    get broken() {
      reads += 1;
      return reads > 2 ? 1 : assert.fail('secret'); // it is read before, in and after the encoding
    },
  };
  assert.throws(
    () => encodeJson(fickle),
    serveError('SERVE_OUTPUT_INVALID', /^The output is not JSON: encoding it throws an AssertionError\.$/),
  );
});

test("outside encodeJson the app's own JSON.stringify behaves as in Node, also after a failure", () => {
  assert.throws(() => encodeJson({ n: 2n ** 64n }));
  encodeJson({ v: new Float32Array([1]), b: Buffer.from('a'), n: 1n });
  assert.throws(() => encodeJson(new Map()));
  assert.equal(JSON.stringify({ f: () => 1, e: new Error('x') }), '{"e":{}}');
  assert.equal(JSON.stringify(new Float32Array([1, 2])), '{"0":1,"1":2}');
  assert.equal(JSON.stringify(Buffer.from([1])), '{"type":"Buffer","data":[1]}');
  assert.equal(JSON.stringify([new Map([['a', 1]]), new Set([1]), Promise.resolve()]), '[{},{},{}]');
  assert.throws(() => JSON.stringify(1n), TypeError);
  assert.equal((BigInt.prototype as { toJSON?: unknown }).toJSON, undefined);
});

test('encodeJson adds nothing that a loop over an object would meet', () => {
  const values = [
    new Map(),
    new Set(),
    new Float32Array(1),
    Buffer.alloc(1),
    Promise.resolve(),
    () => 1,
    new Error(),
  ];
  for (const value of values) {
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
  assert.throws(() => text(new Set([1])), /output is a Set/);
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

test('encodeJson agrees with JSON.stringify on every JSON value', () => {
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
