/** Messages of onnxruntime 1.30; `test/e2e/onnx-errors.test.ts` has some of them from real runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor } from '../../../../protocol/values/tensor.js';
import { Retirement } from '../../../../worker/failures/retirement.js';
import { explainRunError } from '../../../../worker/load/onnx/explain-run-error.js';
import { lostGpu } from '../../lost-gpu.js';

const node = (op: string, status: string, name = ''): string =>
  `Non-zero status code returned while running ${op} node. Name:'${name}' Status Message: ${status}`;

const SOURCE = '/onnxruntime_src/onnxruntime/core';

const OF_INPUTS: readonly (readonly [thrown: string, text: string])[] = [
  [
    node(
      'Gather',
      'indices element out of data bounds, idx=9 must be within the inclusive range [-3,2]',
      '/a/b',
    ),
    'Gather "/a/b": indices element out of data bounds, idx=9 must be within the inclusive range [-3,2].',
  ],
  [
    node(
      'Add',
      `${SOURCE}/providers/cpu/math/element_wise_ops.h:563 void onnxruntime::BroadcastIterator::Init(ptrdiff_t, ptrdiff_t) axis == 1 || axis == largest was false. Attempting to broadcast an axis by a dimension other than 1. 2 by 3\n`,
    ),
    'Add: Attempting to broadcast an axis by a dimension other than 1. 2 by 3.',
  ],
  [
    node(
      'Pad',
      `${SOURCE}/providers/cpu/tensor/padbase.h:122 static void onnxruntime::PadBase::ComputePadsImpl(KernelContextType&, size_t, gsl::span<const long int>, PadsVector&) [with KernelContextType = onnxruntime::OpKernelContext; PadsVector = absl::InlinedVector<long int, 10, std::allocator<long int> >] pads_data.size() == 2 * data_rank was false. Pads tensor size should be equal to twice the input dimension count \n`,
    ),
    'Pad: Pads tensor size should be equal to twice the input dimension count.',
  ],
  [
    node(
      'ConstantOfShape',
      `${SOURCE}/framework/op_kernel.cc:83 virtual OrtValue* onnxruntime::OpKernelContext::OutputMLValue(int, const onnxruntime::TensorShape&) [ONNXRuntimeError] : 1 : FAIL : tensor.cc:57 CalculateTensorStorageSize Tensor shape.Size() must be >= 0\n`,
    ),
    'ConstantOfShape: Tensor shape.Size() must be >= 0.',
  ],
  [node('Loop', node('Concat', 'concatbase.h:133 PrepareForComputeImpl Non concat axis dimensions must match')), 'Concat: Non concat axis dimensions must match.'], // prettier-ignore
  [node('Cast', 'stod'), 'Cast: a text is not a number in range (stod).'],
  [node('ArgMax', ''), 'ArgMax: it gives no reason.'],
  [
    'Got invalid dimensions for input: x for the following indices\n index: 1 Got: 3 Expected: 2\n Please fix either the inputs/outputs or the model.',
    'Got invalid dimensions for input: x for the following indices index: 1 Got: 3 Expected: 2 Please fix either the inputs/outputs or the model.',
  ],
];

for (const [thrown, text] of OF_INPUTS)
  test(`the client is to blame: ${text.slice(0, 70)}`, () => {
    const { code, message } = explainRunError(new Error(thrown), {}, []);
    assert.deepEqual([code, message], ['SERVE_BAD_BODY', `The model cannot run this input: ${text}`]);
  });

const OF_MACHINES: readonly (readonly [thrown: string, text: string])[] = [
  [
    node(
      'ConstantOfShape',
      `${SOURCE}/framework/bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 400000000000000\n`,
    ),
    'ConstantOfShape: Failed to allocate memory for requested buffer of size 400000000000000.',
  ],
  [
    node(
      'Conv',
      `${SOURCE}/providers/cuda/cuda_call.cc:129 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, int) [with ERRTYPE = cudaError; bool THRW = true] CUDA failure 2: out of memory ; GPU=0 ; hostname=secret ; file=/onnxruntime_src/x.cc ; line=9 ; expr=cudaMalloc(&p, size); `,
    ),
    'Conv: CUDA failure 2: out of memory.',
  ],
  ['std::bad_alloc', 'std::bad_alloc.'],
];

for (const [thrown, text] of OF_MACHINES)
  test(`the machine is to blame: ${text}`, () => {
    const { code, message, kind } = explainRunError(new Error(thrown), {}, []);
    assert.deepEqual(
      [code, message, kind],
      ['SERVE_INFERENCE_FAILED', `The model failed on this call: ${text}`, 'prediction'],
    );
  });

test('inputs that contradict each other are named, but not for a lack of memory', () => {
  const metadata = ['a', 'b'].map(
    (name) => ({ name, isTensor: true, type: 'float32', shape: ['n'] }) as const,
  );
  const tensors = {
    a: new Tensor('FP32', [2], new Float32Array(2)),
    b: new Tensor('FP32', [3], new Float32Array(3)),
  };
  const of = (message: string): string => explainRunError(new Error(message), tensors, metadata).message;
  assert.equal(
    of(node('Add', 'Attempting to broadcast')),
    'Input "b": its dimension "n" is 3, but that of "a" is 2; the model wants them to be the same.',
  );
  assert.match(of(node('Add', 'Failed to allocate memory')), /Failed to allocate memory/);
});

test('a GPU that is lost still ends the worker', () => {
  assert.match(
    new Retirement().afterCall(explainRunError(lostGpu(), {}, []))?.message ?? '',
    /^this process can no longer use its GPU/,
  );
});

test('a long text full of slashes is explained at once', () => {
  const text = node('Cast', '/a.'.repeat(100_000));
  assert.ok(explainRunError(new Error(text), {}, []).message.length < 700);
});
