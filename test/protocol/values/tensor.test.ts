import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import * as esModule from '../../../index.js';
import { DATATYPES, Tensor, type AnyTensor, type Datatype } from '../../../protocol/values/tensor.js';

const DATA: Readonly<Record<Datatype, unknown>> = {
  BOOL: Uint8Array.of(1, 0),
  UINT8: Buffer.from([1, 255]),
  UINT16: Uint16Array.of(1, 2),
  UINT32: Uint32Array.of(1, 2),
  UINT64: BigUint64Array.of(1n, 2n ** 64n - 1n),
  INT8: Int8Array.of(1, -2),
  INT16: Int16Array.of(1, -2),
  INT32: Int32Array.of(1, -2),
  INT64: BigInt64Array.of(1n, -(2n ** 63n)),
  FP16: Uint16Array.of(0x3c00, 0xbc00),
  BF16: Uint16Array.of(0x3f80, 0xbf80),
  FP32: Float32Array.of(1, 0.5),
  FP64: Float64Array.of(1, 0.1),
  BYTES: [Buffer.from([0, 255]), 'é'],
};

/** A tensor of values that the types may forbid. */
function tensor(datatype: unknown, shape: unknown, data: unknown): Tensor {
  return new Tensor(datatype as 'FP32', shape as number[], data as Float32Array);
}

for (const datatype of DATATYPES)
  test(`a tensor of ${datatype} has the given data, not copied`, () => {
    const { datatype: type, shape, data } = tensor(datatype, [1, 2], DATA[datatype]);
    assert.deepEqual([type, shape], [datatype, [1, 2]]);
    assert.equal(data, DATA[datatype]);
  });

for (const [what, given, message] of [
  [
    'a datatype that does not exist',
    ['FP8', [1], Uint8Array.of(1)],
    /"FP8" is not a datatype; there are BOOL, UINT8, /,
  ],
  ['a name that every object has', ['toString', [1], []], /"toString" is not a datatype/],
  ['no datatype', [undefined, [1], []], /undefined is not a datatype/],
  [
    'a typed array of another type',
    ['FP32', [1], Float64Array.of(1)],
    /FP32 must be a Float32Array, not a Float64Array$/,
  ],
  ['a list of numbers', ['FP32', [1], [1]], /data of FP32 must be a Float32Array, not a list$/],
  [
    'numbers where bits belong',
    ['BF16', [1], Float32Array.of(1)],
    /must be a Uint16Array of their bits, not a Float32/,
  ],
  ['numbers as BYTES', ['BYTES', [2], ['a', 1]], /element 1 of BYTES must be a Uint8Array or text, not 1$/],
  [
    'bytes in one piece as BYTES',
    ['BYTES', [2], Uint8Array.of(1, 2)],
    /must be an array of Uint8Arrays or texts, not a Uint8/,
  ],
  [
    'less data than its shape',
    ['FP32', [2, 3], new Float32Array(5)],
    /the shape \[2, 3\] has 6 elements, but data has 5$/,
  ],
  [
    'no shape',
    ['FP32', undefined, new Float32Array(5)],
    /the shape must be a list of whole numbers, not undefined$/,
  ],
  ['a negative dimension', ['FP32', [-1, 3], new Float32Array(3)], /whole numbers from 0, not -1$/],
  ['half a dimension', ['FP32', [1.5], new Float32Array(1)], /whole numbers from 0, not 1\.5$/],
  ['a dimension as text', ['FP32', ['1'], new Float32Array(1)], /whole numbers from 0, not "1"$/],
  ['a gap in its shape', ['FP32', [1, , 1], new Float32Array(1)], /whole numbers from 0, not undefined$/], // eslint-disable-line no-sparse-arrays
  [
    'too many elements to count',
    ['FP32', [2 ** 40, 2 ** 40], new Float32Array(1)],
    /more elements than can be counted$/,
  ],
  [
    'too many, and none of them',
    ['FP32', [0, 2 ** 40, 2 ** 40], new Float32Array(0)],
    /more elements than can be counted$/,
  ],
  ['33 dimensions', ['FP32', Array(33).fill(1), new Float32Array(1)], /33 dimensions; 32 are allowed$/],
] as const)
  test(`a tensor of ${what} is a TypeError that says so`, () => {
    assert.throws(
      () => tensor(...(given as readonly [unknown, unknown, unknown])),
      (error) => {
        assert.ok(error instanceof TypeError);
        assert.ok(error.message.startsWith('new Tensor(datatype, shape, data): '));
        assert.match(error.message, message);
        return true;
      },
    );
  });

test('a shape without dimensions has one element, one with a 0 has none', () => {
  assert.equal(new Tensor('FP64', [], Float64Array.of(7)).data[0], 7);
  assert.equal(new Tensor('BYTES', [3, 0], []).data.length, 0);
});

test('TypeScript knows the data of a datatype', () => {
  const int: Tensor<'INT64'> = new Tensor('INT64', [1], BigInt64Array.of(5n));
  const any: AnyTensor = int;
  const sum = any.datatype === 'INT64' ? (any.data[0] as bigint) + 1n : 0n;
  assert.equal(sum, 6n);
  // @ts-expect-error -- a typed array of another type does not compile
  assert.throws(() => new Tensor('FP32', [1], Float64Array.of(1)), TypeError);
});

test('a shape that is changed afterwards does not change the tensor', () => {
  const shape = [1];
  const made = new Tensor('UINT8', shape, Uint8Array.of(1));
  shape.push(5);
  assert.deepEqual(made.shape, [1]);
});

const { Float16Array } = globalThis as { Float16Array?: { of(...items: number[]): ArrayBufferView } };
test('a Float16Array is FP16', { skip: Float16Array === undefined }, () => {
  assert.deepEqual(tensor('FP16', [2], Float16Array?.of(1, -1)).data, Uint16Array.of(0x3c00, 0xbc00));
  assert.throws(() => tensor('BF16', [2], Float16Array?.of(1, -1)), TypeError);
});

test('import and require have the same Tensor', () => {
  const required = createRequire(import.meta.url)('../../../index.cjs') as typeof esModule;
  assert.equal(required.Tensor, Tensor);
  assert.equal(esModule.Tensor, Tensor);
});
