import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOutOfMemory, lossOfGpu, outlookOf } from '../../../worker/failures/outlook.js';

function coded(code: string, message = 'failed'): Error {
  return Object.assign(new Error(message), { code });
}

const TRANSIENT: readonly (readonly [what: string, thrown: unknown])[] = [
  ['a refused connection', coded('ECONNREFUSED')],
  ['a name that cannot be resolved now', coded('EAI_AGAIN')],
  ['a full disk', coded('ENOSPC')],
  ['a code deep in the causes', new Error('a', { cause: new Error('b', { cause: coded('ETIMEDOUT') }) })],
  ['a code in one of many parts', new AggregateError([new Error('x'), coded('EHOSTUNREACH')], 'all failed')],
  [
    'a code that is only in the message',
    new Error('cannot load the weights: connect ECONNREFUSED 10.0.0.1:80'),
  ],
  ['a GPU that is full', new Error('CUDA error: out of memory')],
  ['a buffer that cannot be had', new RangeError('Array buffer allocation failed')],
  ['a limit of AbortSignal.timeout', new DOMException('too slow', 'TimeoutError')],
  ['a text', 'EMFILE: too many open files'],
];

for (const [what, thrown] of TRANSIENT) {
  test(`${what} may pass by itself`, () => assert.equal(outlookOf(thrown), 'transient'));
}

const hostile = Object.defineProperty({}, 'code', {
  get: () => {
    throw new Error('no');
  },
});
const ring = new Error('ring');
ring.cause = ring;

const UNKNOWN: readonly (readonly [what: string, thrown: unknown])[] = [
  ['an error of the app', new Error('the weights are missing')],
  ['a file that is not there', coded('ENOENT', "ENOENT: no such file or directory, open 'weights.bin'")],
  ['a word that only looks like a code', new Error('EVERYTHING IS WRONG, EAGAINST ALL RULES')],
  ['a code that is no text', Object.assign(new Error('x'), { code: 7 })],
  ['a hostile object', hostile],
  ['an error that causes itself', ring],
  ['undefined', undefined],
  ['null', null],
];

for (const [what, thrown] of UNKNOWN) {
  test(`${what} is not known to pass by itself`, () => assert.equal(outlookOf(thrown), 'unknown'));
}

const ONNX = 'at run (/app/node_modules/onnxruntime-node/dist/backend.js:117:108)';
const ONNX_ON_WINDOWS =
  'at Immediate.<anonymous> (C:\\app\\node_modules\\onnxruntime-node\\dist\\backend.js:117:108)';
const NODE = "Non-zero status code returned while running Conv node. Name:'a' Status Message: ";

/** An error created at this frame, which the app called. */
function madeAt(frame: string, message: string): Error {
  const error = new Error(message);
  error.stack = `Error: ${message}\n    ${frame}\n    at inference (file:///app/app.mjs:3:9)`;
  return error;
}

const LOST_TEXTS = [
  'CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=h',
  `${NODE}CUDA failure 719: unspecified launch failure ; GPU=0`,
  `${NODE}/onnxruntime_src/cuda/cuda_call.cc:121 void onnxruntime::CudaCall() CUDA failure 710: device-side assert triggered`,
  `${NODE}CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=0 ; hostname=h`,
  `${NODE}/onnxruntime_src/cuda/cuda_call.cc:121 void onnxruntime::CudaCall() CUDNN failure 4: CUDNN_STATUS_INTERNAL_ERROR ; GPU=0`,
];
const NO_MEMORY_TEXTS = [
  `${NODE}/src/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t) Failed to allocate memory for requested buffer of size 8`,
  `${NODE}CUDA failure 2: out of memory ; GPU=0`,
  `${NODE}CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=h`,
  'failed to call OrtRun(). ERROR_CODE: 6, ERROR_MESSAGE: std::bad_alloc',
];

for (const frame of [ONNX, ONNX_ON_WINDOWS])
  test(`an error of ONNX Runtime created ${frame} decides whether the process can go on`, () => {
    for (const text of LOST_TEXTS) assertSays(madeAt(frame, text), { lost: true });
    for (const text of NO_MEMORY_TEXTS) assertSays(madeAt(frame, text), { noMemory: true });
    assertSays(madeAt(frame, 'Invalid rank for input: image'), {});
    assertSays(
      madeAt(frame, `${NODE}CUBLAS failure 7: CUBLAS_STATUS_INVALID_VALUE ; GPU=0 ; hostname=h`),
      {},
    );
  });

test('a text of a client decides nothing', () => {
  for (const text of [...LOST_TEXTS, ...NO_MEMORY_TEXTS, 'Array buffer allocation failed']) {
    for (const error of [new Error(text), new RangeError(text), text, new Error(`unknown label: ${text}`)])
      assertSays(error, {});
    for (const forged of [ONNX, 'at new ArrayBuffer (<anonymous>)'])
      assertSays(new Error(`${text}\n    ${forged}`), {});
    assertSays(madeAt(ONNX, `Invalid input name: ${text}`), {});
    assertSays(madeAt(ONNX, `${NODE}/src/cast_op.cc:12 void Cast() cannot cast ${text}`), {});
  }
});

test('a buffer that V8 or Node could not have is missing memory', () => {
  for (const make of [
    () => new ArrayBuffer(Number.MAX_SAFE_INTEGER),
    () => new SharedArrayBuffer(Number.MAX_SAFE_INTEGER),
  ])
    assert.throws(make, (error) => isOutOfMemory(error));
});

/** Texts that would take hours if the time grew faster than their length. */
test('long texts of clients are searched to their end', { timeout: 60_000 }, () => {
  for (const part of ['cuda_call.cc:1 ', 'cuda_call.cc:1', 'bfc_arena.cc:1 ', ' ', 'a', "'", '('])
    for (const begin of ['', NODE]) {
      const text = begin + part.repeat(1_000_000 / part.length);
      assertSays(madeAt(ONNX, text), {});
      assertSays(madeAt(part.repeat(100_000), text), {});
    }
});

function assertSays(
  thrown: unknown,
  { lost = false, noMemory = false }: { lost?: boolean; noMemory?: boolean },
): void {
  for (const each of [thrown, new Error('of the app', { cause: thrown })])
    assert.deepEqual(
      [lossOfGpu(each) !== undefined, isOutOfMemory(each)],
      [lost, noMemory],
      String(thrown).slice(0, 200),
    );
}
