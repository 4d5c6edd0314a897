import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Signature, Tensor, type Datatype } from '../../../../protocol/values/tensor.js';
import { readCallInputs } from '../../../../worker/load/onnx/call-inputs.js';

function wants(inputs: Readonly<Record<string, readonly [Datatype, readonly number[]]>>): Signature {
  const specs = Object.entries(inputs).map(([name, [datatype, shape]]) => ({ name, datatype, shape }));
  return { inputs: specs, outputs: [] };
}

const ROWS = wants({ x: ['FP32', [-1, 2]] });
const TWO = wants({ a: ['INT64', [-1, 2]], b: ['BOOL', [-1]] });
const TEXTS = wants({ text: ['BYTES', [-1]] });
const X12 = new Tensor('FP32', [1, 2], new Float32Array([1, 2]));

type Read = readonly [what: string, signature: Signature, input: unknown, tensors: object, isRow: boolean];

/** Declared as a scalar, and not declared at all. */
const SCALAR = wants({ sr: ['FP32', []] });
const ANY: Signature = { inputs: [{ name: 'x', datatype: 'FP32' }], outputs: [] };
const ONE = new Tensor('FP32', [1], new Float32Array([5]));

const READ: readonly Read[] = [
  ['a number for a scalar', SCALAR, { sr: 5 }, { sr: new Tensor('FP32', [], ONE.data) }, false],
  ['a list of one for a scalar', SCALAR, { sr: [5] }, { sr: ONE }, false],
  ['a tensor of one for a scalar', SCALAR, { sr: ONE }, { sr: ONE }, false],
  ['lists of any shape', ANY, { x: [[1, 2]] }, { x: X12 }, false],
  ['a list of any shape', ANY, { x: [5] }, { x: ONE }, false],
  ['a number of any shape', ANY, 5, { x: new Tensor('FP32', [], ONE.data) }, false],
  ['rows by name', ROWS, { x: [[1, 2]] }, { x: X12 }, false],
  ['a row by name', ROWS, { x: [1, 2] }, { x: X12 }, true],
  ['rows alone', ROWS, [[1, 2]], { x: X12 }, false],
  ['a row alone', ROWS, [1, 2], { x: X12 }, true],
  [
    'bytes of rows, as MessagePack and plain bodies have them',
    ROWS,
    new Uint8Array(new Float32Array([1, 2]).buffer),
    { x: X12 },
    false,
  ],
  ['a tensor', ROWS, { x: X12 }, { x: X12 }, false],
  [
    'no rows',
    ROWS,
    { x: new Tensor('FP32', [0, 2], new Float32Array(0)) },
    { x: new Tensor('FP32', [0, 2], new Float32Array(0)) },
    false,
  ],
  [
    'several inputs without the batch',
    TWO,
    { a: [1, 2], b: true },
    {
      a: new Tensor('INT64', [1, 2], new BigInt64Array([1n, 2n])),
      b: new Tensor('BOOL', [1], new Uint8Array([1])),
    },
    true,
  ],
  [
    'one of several without the batch',
    TWO,
    { a: [[1, 2]], b: true },
    {
      a: new Tensor('INT64', [1, 2], new BigInt64Array([1n, 2n])),
      b: new Tensor('BOOL', [1], new Uint8Array([1])),
    },
    false,
  ],
  ['a text alone', TEXTS, 'hi', { text: new Tensor('BYTES', [1], ['hi']) }, true],
  ['texts', TEXTS, ['hi', ''], { text: new Tensor('BYTES', [2], ['hi', '']) }, false],
  ['bytes that are text', TEXTS, Buffer.from('é'), { text: new Tensor('BYTES', [1], ['é']) }, true],
  [
    'a fixed batch of one',
    wants({ x: ['UINT8', [1, 2]] }),
    [3, 4],
    { x: new Tensor('UINT8', [1, 2], new Uint8Array([3, 4])) },
    true,
  ],
  [
    'a single number',
    wants({ x: ['FP64', []] }),
    { x: 3 },
    { x: new Tensor('FP64', [], new Float64Array([3])) },
    false,
  ],
  [
    'an empty list, behind which the signature has the sizes',
    wants({ past: ['FP32', [-1, 2, -1, 4]] }),
    { past: [[[], []]] },
    { past: new Tensor('FP32', [1, 2, 0, 4], new Float32Array(0)) },
    false,
  ],
  [
    'a row with an empty list',
    wants({ past: ['FP32', [-1, 2, -1, 4]] }),
    { past: [[], []] },
    { past: new Tensor('FP32', [1, 2, 0, 4], new Float32Array(0)) },
    true,
  ],
  ['no rows as a list', ROWS, { x: [] }, { x: new Tensor('FP32', [0, 2], new Float32Array(0)) }, false],
  ['no input of a model without any', wants({}), {}, {}, false],
];

for (const [what, signature, input, tensors, isRow] of READ)
  test(`reads ${what}`, () => {
    const read = readCallInputs(input, signature);
    assert.deepEqual(read.tensors, tensors);
    assert.equal(read.isRow, isRow);
  });

test('tensors are answered with tensors', () => {
  assert.equal(readCallInputs({ x: X12 }, ROWS).areTensors, true);
  assert.equal(readCallInputs({ x: [1, 2] }, ROWS).areTensors, false);
});

const REFUSED: readonly (readonly [what: string, signature: Signature, input: unknown, message: string])[] = [
  ['an empty body', TWO, null, 'The body is empty; the model wants a value for each input: {"a":…,"b":…}.'],
  [
    'a value alone for two inputs',
    TWO,
    [1],
    'The body is a list; the model wants a value for each input: {"a":…,"b":…}.',
  ],
  ['a missing input', TWO, { a: [1, 2] }, 'Input "b" is missing; the model wants BOOL of the shape [-1].'],
  ['an unknown input', ROWS, { x: [1, 2], y: 1 }, 'The model has no input "y"; its inputs are "x".'],
  [
    'too few dimensions',
    wants({ x: ['FP32', [-1, 1, 2]] }),
    { x: [1, 2] },
    'Input "x": the model wants FP32 of the shape [-1, 1, 2], but got lists of the shape [2].',
  ],
  [
    'too many dimensions',
    ROWS,
    { x: [[[1, 2]]] },
    'Input "x": the model wants FP32 of the shape [-1, 2], but got lists of the shape [1, 1, 2].',
  ],
  [
    'another size',
    ROWS,
    { x: [[1, 2, 3]] },
    'Input "x": the model wants FP32 of the shape [-1, 2], but got lists of the shape [1, 3].',
  ],
  [
    'ragged rows',
    ROWS,
    { x: [[1, 2], [3]] },
    'Input "x": a list in dimension 1 of data has 1 items; the shape [2, 2] wants 2.',
  ],
  [
    'another kind of element',
    ROWS,
    { x: [[1, 'a']] },
    'Input "x": element 1 is "a"; FP32 has numbers up to 3.4028235e+38.',
  ],
  [
    'a fraction',
    TWO,
    { a: [1.5, 2], b: true },
    'Input "a": element 0 is 1.5; INT64 has whole numbers from -9223372036854775808 to 9223372036854775807.',
  ],
  [
    'an empty list before a free size',
    wants({ past: ['FP32', [-1, 2, -1, -1]] }),
    { past: [[[], []]] },
    'Input "past": an empty list does not say the sizes behind it in FP32 of the shape [-1, 2, -1, -1]; send the shape, as the Open Inference Protocol V2 does (/v2).',
  ],
  [
    'empty lists where another number of them must be',
    wants({ past: ['FP32', [-1, 2, -1, 4]] }),
    { past: [[[], [], []]] },
    'Input "past": the model wants FP32 of the shape [-1, 2, -1, 4], but got lists of the shape [1, 3, 0].',
  ],
  [
    'bytes of which several shapes are possible',
    wants({ x: ['FP32', [-1, 3, -1, -1]] }),
    new Uint8Array(48),
    'Input "x": 48 bytes may have several shapes of FP32 of the shape [-1, 3, -1, -1]; send the shape, as the Open Inference Protocol V2 does (/v2).',
  ],
  [
    'an object',
    ROWS,
    { x: { y: 1 } },
    'Input "x": the model wants FP32 of the shape [-1, 2], but got an object.',
  ],
  ['null', ROWS, { x: null }, 'Input "x": the model wants FP32 of the shape [-1, 2], but got null.'],
  ['bytes of no whole row', ROWS, new Uint8Array(7), 'Input "x": 7 bytes are not FP32 of the shape [-1, 2].'],
  [
    'another datatype',
    ROWS,
    { x: new Tensor('FP64', [1, 2], new Float64Array(2)) },
    'Input "x": the model wants FP32 of the shape [-1, 2], but got FP64 of the shape [1, 2].',
  ],
  [
    'a text with a NUL',
    TEXTS,
    ['ok', 'a\0b'],
    'Input "text": element 1 has a NUL, and onnxruntime would cut it there.',
  ],
  [
    'bytes that are no UTF-8',
    TEXTS,
    { text: new Tensor('BYTES', [1], [Buffer.from([0xff])]) },
    'Input "text": element 0 is not UTF-8, and onnxruntime takes only that.',
  ],
];

for (const [what, signature, input, message] of REFUSED)
  test(`refuses ${what} by the name of the input`, () => {
    assert.throws(() => readCallInputs(input, signature), { code: 'SERVE_BAD_BODY', message });
  });

test('an infinity is refused in lists of JSON, which has none, and passes elsewhere', () => {
  for (const datatype of ['FP16', 'FP64'] as const) {
    const signature = wants({ x: [datatype, [-1]] });
    const input = JSON.parse('{"x": [1, -1e400]}') as unknown;
    const message = 'Input "x": element 1 is beyond the largest number.';
    assert.throws(() => readCallInputs(input, signature, true), { code: 'SERVE_BAD_BODY', message });
    const { x } = readCallInputs(input, signature).tensors;
    assert.deepEqual(readCallInputs({ x }, signature, true).tensors, { x });
  }
});
