/** Values of apps as tensors by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, type TensorSpec } from '../../../../protocol/values/tensor.js';
import { outputsOf } from '../../../../worker/formats/open-inference/outputs.js';
import { serveError } from '../../refusals.js';
import { spec } from './tensors.js';

const given = (value: unknown, ...outputs: readonly TensorSpec[]): Record<string, Tensor> =>
  Object.fromEntries(outputsOf(value, outputs.length === 0 ? null : { inputs: [], outputs }));

const FLOATS = Float32Array.of(1, 2);

for (const [what, value, expected] of [
  ['a Tensor', new Tensor('FP32', [1, 2], FLOATS), new Tensor('FP32', [1, 2], FLOATS)],
  [
    'a plain object with its fields',
    { datatype: 'FP32', shape: [1, 2], data: FLOATS },
    new Tensor('FP32', [1, 2], FLOATS),
  ],
  [
    'such an object with a list',
    { datatype: 'INT8', shape: [1, 2], data: [[1, -2]] },
    new Tensor('INT8', [1, 2], Int8Array.of(1, -2)),
  ],
  ['a typed array', FLOATS, new Tensor('FP32', [2], FLOATS)],
  ['a BigInt64Array', BigInt64Array.of(1n), new Tensor('INT64', [1], BigInt64Array.of(1n))],
  ['clamped bytes', Uint8ClampedArray.of(1), new Tensor('UINT8', [1], Uint8Array.of(1))],
  ['a Buffer', Buffer.from([7]), new Tensor('UINT8', [1], Buffer.from([7]))],
  ['a list of numbers', [1, 0.5], new Tensor('FP64', [2], Float64Array.of(1, 0.5))],
  ['nested lists', [[1, 2], [3, NaN]], new Tensor('FP64', [2, 2], Float64Array.of(1, 2, 3, NaN))], // prettier-ignore
  ['a list of booleans', [true, false], new Tensor('BOOL', [2], Uint8Array.of(1, 0))],
  ['a list of texts', ['a', 'é'], new Tensor('BYTES', [2], [Buffer.from('a'), Buffer.from('é')])],
  ['a list of bytes', [Uint8Array.of(255)], new Tensor('BYTES', [1], [Uint8Array.of(255)])],
  ['a list of BigInts', [2n ** 60n], new Tensor('INT64', [1], BigInt64Array.of(2n ** 60n))],
  ['a list of typed arrays', [FLOATS, FLOATS], new Tensor('FP32', [2, 2], Float32Array.of(1, 2, 1, 2))],
  ['an empty list', [], new Tensor('FP64', [0], new Float64Array(0))],
  ['a number', 5, new Tensor('FP64', [1], Float64Array.of(5))],
  ['text', 'a', new Tensor('BYTES', [1], [Buffer.from('a')])],
  ['false', false, new Tensor('BOOL', [1], Uint8Array.of(0))],
] as const) {
  test(`${what} without a name is the tensor "output"`, () =>
    assert.deepEqual(given(value), { output: expected }));

  test(`${what} is a tensor of its name`, () =>
    assert.deepEqual(given({ a: value, b: 1 }), { a: expected, b: given(1)['output'] }));
}

for (const [what, value, output, expected] of [
  ['a list', [1, 2], spec('INT64', [-1]), new Tensor('INT64', [2], BigInt64Array.of(1n, 2n))],
  ['nested lists', [[0.5]], spec('FP16', [-1, 1]), new Tensor('FP16', [1, 1], Uint16Array.of(0x3800))],
  [
    'rows of another type',
    [Float64Array.of(1)],
    spec('FP32', [-1, 1]),
    new Tensor('FP32', [1, 1], Float32Array.of(1)),
  ],
  [
    'rows of bytes',
    [Uint8Array.of(1, 2)],
    spec('UINT8', [1, 2]),
    new Tensor('UINT8', [1, 2], Uint8Array.of(1, 2)),
  ],
  [
    'a typed array with one free dimension',
    FLOATS,
    spec('FP32', [-1, 2]),
    new Tensor('FP32', [1, 2], FLOATS),
  ],
  ['a typed array of a fixed shape', FLOATS, spec('FP32', [2, 1]), new Tensor('FP32', [2, 1], FLOATS)],
  [
    'a typed array of bits',
    Uint16Array.of(1),
    spec('BF16', [-1]),
    new Tensor('BF16', [1], Uint16Array.of(1)),
  ],
  ['bytes for BOOL', Uint8Array.of(1), spec('BOOL', [-1]), new Tensor('BOOL', [1], Uint8Array.of(1))],
  ['bytes for BYTES', Uint8Array.of(1), spec('BYTES', [1]), new Tensor('BYTES', [1], [Uint8Array.of(1)])],
  ['a number', 5, spec('INT32', []), new Tensor('INT32', [], Int32Array.of(5))],
  ['a typed array of another type, which stays', FLOATS, spec('FP64', [-1]), new Tensor('FP32', [2], FLOATS)],
] as const)
  test(`the signature decides name, datatype and shape of ${what}`, () => {
    assert.deepEqual(given(value, output), { x: expected });
    assert.deepEqual(given({ x: value }, output, spec('INT8', [1], 'y')), { x: expected });
  });

test('outputs are in the order of the signature, also if their names are numbers', () => {
  const outputs = ['2', '1', 'a'].map((name) => ({ name, datatype: 'FP64', shape: [-1] }) as const);
  const tensors = outputsOf({ more: [1], a: [1], 1: [1], 2: [1] }, { inputs: [], outputs });
  assert.deepEqual([...tensors.keys()], ['2', '1', 'a', 'more']);
});

test('a value without a name is "output" if the signature has several', () => {
  assert.deepEqual(Object.keys(given([1], spec('FP32', [1], 'a'), spec('FP32', [1], 'b'))), ['output']);
});

const cycle: unknown[] = [];
cycle.push(cycle);

for (const [what, value, message] of [
  ['nothing', undefined, /^The output is undefined; return tensors by name, such as \{ scores: /],
  ['null', null, /^The output is null; return tensors by name/],
  ['an empty object', {}, /^The output is an object without properties; return tensors by name/],
  ['a Map', new Map([['a', 1]]), /^The output is a Map; return Object\.fromEntries\(map\)\.$/],
  [
    'an object in an object',
    { a: { b: 1 } },
    /^Output "a": an object is not a tensor; return a Tensor, a typed array, or lists of/,
  ],
  [
    'a number beyond its datatype',
    { a: { datatype: 'FP16', shape: [1], data: [70_000] } },
    /^Output "a": element 0 is 70000; FP16 has numbers up to 65504\.$/,
  ],
  ['null by name', { a: null }, /^Output "a": null is not a tensor/],
  ['a list of null', { a: [null] }, /^Output "a": null is not a tensor/],
  ['a mixed list', { a: [1, true] }, /^Output "a": element 1 is true; FP64 has numbers up to /],
  [
    'a ragged list',
    { a: [[1], [1, 2]] },
    /^Output "a": a list in dimension 1 of data has 2 items; the shape \[2, 1\] wants 1\.$/,
  ],
  ['a list that contains itself', { a: cycle }, /^Output "a": it is nested deeper than 32 lists\.$/],
  [
    'a BigInt beyond 64 bits',
    { a: [2n ** 70n] },
    /^Output "a": element 0 is 1180591620717411303424; INT64 has/,
  ],
  ['half a surrogate pair', { a: ['\ud800'] }, /^Output "a": element 0 is "\\ud800"; BYTES has texts\.$/],
  [
    'fields that make no tensor',
    { a: { datatype: 'FP32', shape: [3], data: FLOATS } },
    /^Output "a": the shape \[3\] has 3 elements, but data has 2\.$/,
  ],
  [
    'a list of another length',
    { a: { datatype: 'FP32', shape: [3], data: [1] } },
    /^Output "a": the shape \[3\] has 3 elements, but data has 1\.$/,
  ],
  [
    'a datatype that does not exist',
    { a: { datatype: 'float', shape: [1], data: FLOATS } },
    /^Output "a": "float" is not a datatype/,
  ],
] as const)
  test(`${what} is no output; the error says so`, () => {
    assert.throws(() => given(value), serveError('SERVE_OUTPUT_INVALID', message));
  });

test('a tensor whose memory was given away is refused', () => {
  const tensor = new Tensor('FP32', [2], Float32Array.of(1, 2));
  structuredClone(tensor.data.buffer, { transfer: [tensor.data.buffer as ArrayBuffer] });
  assert.throws(
    () => given({ a: tensor }),
    serveError('SERVE_OUTPUT_INVALID', /has 2 elements, but data has 0/),
  );
});
