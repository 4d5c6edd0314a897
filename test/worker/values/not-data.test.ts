/** Both encodings refuse values that are not data, at any depth; JSON.stringify would write `{}`, or leave them out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeJson } from '../../../worker/values/json-encoding.js';
import { plainValue } from '../../../worker/values/plain-value.js';
import { serveError } from '../refusals.js';

/** An object that its toJSON replaces with `given`. */
const giving = (given: unknown): object => ({ toJSON: () => given });

class Matrix {
  readonly #rows = [[1], [2]];

  [Symbol.iterator](): Iterator<number[]> {
    return this.#rows.values();
  }
}

class Callbacks {
  [Symbol.asyncIterator](): AsyncIterator<never> {
    return { next: () => Promise.resolve({ done: true, value: undefined }) };
  }
}

function withField(): FormData {
  const form = new FormData();
  form.set('a', '1');
  return form;
}

const REFUSED: readonly (readonly [what: string, value: unknown, message: RegExp])[] = [
  ['a Map given by a toJSON', { a: giving(new Map([['k', 1]])) }, /output\.a is a Map; return Object/],
  ['a Map given by a toJSON at the top', giving(new Map()), /output is a Map; return/],
  ['a Map in what a toJSON gives', giving({ rows: [new Map()] }), /output\.rows\[0\] is a Map; return/],
  ['a Map beside an object with a toJSON', [giving(1), { m: new Map() }], /output\[1\]\.m is a Map; return/],
  ['a Set given by a toJSON', [giving(new Set([1]))], /output\[0\] is a Set; return/],
  ['a promise given by a toJSON', { a: giving(Promise.resolve(1)) }, /output\.a is a promise; await it/],
  ['an Error given by a toJSON', { a: giving(new Error('e')) }, /output\.a is an Error; return/],
  ['a function given by a toJSON', { a: giving(() => 1) }, /output\.a is a function; call it/],
  ['a symbol given by a toJSON', { a: giving(Symbol('s')) }, /output\.a is a symbol; return/],
  ['a symbol in what a toJSON gives', { a: giving({ b: [Symbol('s')] }) }, /output\.a\.b\[0\] is a symbol/],
  ['a symbol given by the toJSON of a list', [1, listGiving(Symbol('s'))], /output\[1\] is a symbol/],
  [
    'a Map in an object whose toJSON returns the object itself',
    { a: givingItself({ m: new Map() }) },
    /output\.a\.m is a Map; return/,
  ],
  ['Headers', { h: new Headers({ a: 'b' }) }, /output\.h is a Headers; return Object\.fromEntries/],
  ['Headers at the top', new Headers({ a: 'b' }), /output is a Headers; return/],
  ['Headers given by a toJSON', { a: giving(new Headers()) }, /output\.a is a Headers; return/],
  ['a FormData', [{ form: withField() }], /output\[0\]\.form is a FormData; return Object\.fromEntries/],
  ['URLSearchParams', { q: new URLSearchParams('a=1') }, /output\.q is a URLSearchParams; return Object/],
  [
    'an object that has only an iterator',
    { rows: { *[Symbol.iterator]() {} } },
    /output\.rows is an iterable without properties; return \[\.\.\.iterable\]/,
  ],
  ['an instance of a class that has only an iterator', [new Matrix()], /output\[0\] is an iterable without/],
  [
    'an object without a prototype that has only an iterator',
    { rows: Object.assign(Object.create(null) as object, { *[Symbol.iterator]() {} }) },
    /output\.rows is an iterable without properties/,
  ],
  [
    'an object that has only an asynchronous iterator',
    { later: new Callbacks() },
    /output\.later is an iterable without properties; return what it yields/,
  ],
  [
    'a web stream',
    { body: new Blob(['x']).stream() },
    /output\.body is an iterable without properties; return what/,
  ],
];

for (const [what, value, message] of REFUSED) {
  test(`both encodings refuse ${what} and name its place`, () => {
    assert.throws(() => encodeJson(value), serveError('SERVE_OUTPUT_INVALID', message));
    assert.throws(() => plainValue(value), serveError('SERVE_OUTPUT_INVALID', message));
  });
}

function listGiving(given: unknown): unknown[] {
  return Object.assign([], giving(given));
}

function givingItself(value: object): object {
  return Object.assign(value, {
    toJSON() {
      return this;
    },
  });
}

class Row {
  readonly #cells: readonly number[];
  readonly label: string;

  constructor(label: string, ...cells: number[]) {
    this.label = label;
    this.#cells = cells;
  }

  [Symbol.iterator](): Iterator<number> {
    return this.#cells.values();
  }
}

class Tagged extends Array<number> {
  toJSON(): unknown {
    return { tagged: [...this] };
  }
}

const WRITTEN: readonly (readonly [what: string, value: unknown, plain: unknown])[] = [
  ['an iterable with properties by its properties', [new Row('a', 1, 2)], [{ label: 'a' }]],
  ['an instance without anything', { a: new (class Nothing {})() }, { a: {} }],
  ['a Date given by a toJSON', giving(new Date(0)), '1970-01-01T00:00:00.000Z'],
  ['a typed array given by a toJSON', { a: giving(new Float32Array([0.5])) }, { a: [0.5] }],
  ['a typed array in what a toJSON gives', giving({ a: new Float32Array([0.5]) }), { a: [0.5] }],
  [
    'a URL, and one given by a toJSON',
    [new URL('http://a/'), giving(new URL('http://b/'))],
    ['http://a/', 'http://b/'],
  ],
  ['an array with a toJSON of its class', { a: Tagged.from([1, 2]) }, { a: { tagged: [1, 2] } }],
];

for (const [what, value, plain] of WRITTEN) {
  test(`both encodings write ${what}`, () => {
    assert.deepEqual(JSON.parse(encodeJson(value).toString()), plain);
    assert.deepEqual(plainValue(value), plain);
  });
}

test('JSON writes a BigInt given by a toJSON as a number, and an empty boxed string as text', () => {
  assert.equal(encodeJson([giving(5n), Object('')]).toString(), '[5,""]');
});

test('both encodings call a toJSON once, and it may answer differently every time', () => {
  for (const encode of [encodeJson, plainValue]) {
    let calls = 0;
    encode({ a: { toJSON: () => ({ calls: (calls += 1) }) } });
    assert.equal(calls, 1);
  }
});
