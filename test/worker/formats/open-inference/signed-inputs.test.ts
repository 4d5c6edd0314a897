/** Inputs against a signature. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor } from '../../../../protocol/values/tensor.js';
import { checkInputs } from '../../../../worker/formats/open-inference/signed-inputs.js';
import { serveError } from '../../refusals.js';
import { spec } from './tensors.js';

const SIGNATURE = { inputs: [spec('FP32', [-1, 2], 'a'), spec('INT64', [1], 'b')], outputs: [] };
const a = new Tensor('FP32', [3, 2], new Float32Array(6));
const b = new Tensor('INT64', [1], BigInt64Array.of(1n));

test('inputs of the wanted names, datatypes and shapes are accepted', () => checkInputs({ b, a }, SIGNATURE));

for (const [what, inputs, message] of [
  ['one is missing', { a }, /^Input "b" is missing; the model wants INT64 of the shape \[1\]\.$/],
  [
    'there is one too many',
    { a, b, toString: b },
    /^The model has no input "toString"; its inputs are "a", "b"\.$/,
  ],
  [
    'one has another datatype',
    { a, b: new Tensor('INT32', [1], Int32Array.of(1)) },
    /^Input "b": the model wants INT64 of the shape \[1\], but got INT32 of the shape \[1\]\.$/,
  ],
  [
    'one has another size',
    { a: new Tensor('FP32', [2, 3], a.data), b },
    /^Input "a": the model wants FP32 of the shape \[-1, 2\], but got FP32 of the shape \[2, 3\]\.$/,
  ],
  [
    'one has another number of dimensions',
    { a: new Tensor('FP32', [6], a.data), b },
    /but got FP32 of the shape \[6\]\.$/,
  ],
] as const)
  test(`inputs of which ${what} are refused`, () => {
    assert.throws(() => checkInputs(inputs, SIGNATURE), serveError('SERVE_BAD_BODY', message));
  });
