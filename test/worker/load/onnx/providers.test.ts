/** The choice of execution providers and session options; `test/processes/worker/onnx/session-errors.test.ts` has the real refusals. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { explainSessionError } from '../../../../worker/load/onnx/explain-session-error.js';
import { checkProviders, providersOf } from '../../../../worker/load/onnx/providers.js';
import { sessionOptions } from '../../../../worker/load/onnx/session-options.js';
import { appFolder } from '../../app-folder.js';

const ON_GPU = { gpu: '0', threads: 3 };
const ON_CPU = { gpu: null, threads: 3 };

test('a worker with a GPU runs on cuda, with the CPU behind it, unless the operator says otherwise', () => {
  assert.deepEqual(providersOf('', ON_GPU), ['cuda', 'cpu']);
  assert.deepEqual(providersOf('', ON_CPU), ['cpu']);
  assert.deepEqual(providersOf('cpu', ON_GPU), ['cpu']);
  assert.deepEqual(providersOf('tensorrt,cuda', ON_GPU), ['tensorrt', 'cuda']);
});

test("a session has the worker's threads, which do not spin", () => {
  const { intraOpNumThreads, interOpNumThreads, extra } = sessionOptions(['cpu'], ON_CPU);
  assert.deepEqual([intraOpNumThreads, interOpNumThreads], [3, 1]);
  const spinning = { allow_spinning: '0' };
  assert.deepEqual(extra, { session: { intra_op: spinning, inter_op: spinning } });
});

test('without cpu in the list no node may run there', () => {
  const fallbackOf = (...providers: string[]): unknown =>
    (sessionOptions(providers, ON_GPU).extra?.['session'] as Record<string, unknown>)[
      'disable_cpu_ep_fallback'
    ];
  assert.equal(fallbackOf('cuda'), '1');
  assert.equal(fallbackOf('cuda', 'cpu'), undefined);
});

test('a provider whose library is there is not refused', (t) => {
  const libraries = appFolder(t, { 'libonnxruntime_providers_cuda.so': '' });
  const supported = [
    { name: 'cpu', bundled: true },
    { name: 'cuda', bundled: false },
  ];
  checkProviders('m.onnx', ['cuda', 'cpu'], supported, libraries);
  assert.throws(() => checkProviders('m.onnx', ['cuda'], supported, join(libraries, 'none')), {
    message:
      'm.onnx: onnxruntime cannot use cuda: npm has left its libraries out. Run: ONNXRUNTIME_NODE_INSTALL=cuda12 npm rebuild onnxruntime-node. `--providers cpu` serves without it.',
  });
});

/** Messages of onnxruntime 1.30 for CUDA, which the machines of the tests do not have. */
const EXPLAINED: readonly (readonly [
  providers: string,
  thrown: string,
  message: string,
  permanent: boolean,
])[] = [
  [
    'cuda,cpu',
    'OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library',
    'm.onnx: onnxruntime cannot use cuda: the line of onnxruntime above names a library that it lacks; cuda needs CUDA 12 and cuDNN 9. `--providers cpu` serves without it.',
    true,
  ],
  [
    'cuda,cpu',
    'CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=h',
    'm.onnx: onnxruntime cannot use cuda: CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=h. `--providers cpu` serves without it.',
    true,
  ],
  [
    'cuda,cpu',
    'CUDA failure 2: out of memory ; GPU=0 ; hostname=h',
    'm.onnx: onnxruntime cannot use cuda: CUDA failure 2: out of memory ; GPU=0 ; hostname=h. `--providers cpu` serves without it.',
    false,
  ],
  [
    'cuda',
    'This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP has been explicitly disabled by the user.',
    'm.onnx: a part of the model would run on the CPU, which --providers cuda does not have. Add it: --providers cuda,cpu',
    true,
  ],
  [
    'cpu',
    'std::bad_alloc',
    'm.onnx: there is not enough memory to load it. Give the process more, or export a smaller model.',
    true,
  ],
  [
    'cpu',
    'Something new:\n  it failed',
    'm.onnx: onnxruntime cannot load it: Something new: it failed.',
    true,
  ],
];

for (const [providers, thrown, message, permanent] of EXPLAINED)
  test(`"${thrown}" under --providers ${providers} is explained, ${permanent ? 'and latches' : 'and may pass'}`, () => {
    const error = explainSessionError({ path: 'm.onnx', providers: providers.split(',') }, new Error(thrown));
    assert.deepEqual([error.message, error.permanent], [message, permanent]);
  });
