/** The choice of execution providers and session options; `test/processes/worker/onnx/session-errors.test.ts` has the real refusals. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { explainSessionError } from '../../../../worker/load/onnx/explain-session-error.js';
import { checkedProviders, providersOf } from '../../../../worker/load/onnx/providers.js';
import { sessionOptions } from '../../../../worker/load/onnx/session.js';
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
  assert.deepEqual(checkedProviders('m.onnx', ['CUDA', 'cpu'], supported, libraries), ['cuda', 'cpu']);
  assert.throws(() => checkedProviders('m.onnx', ['NoSuch'], supported, libraries), {
    message:
      'm.onnx: this onnxruntime-node has no execution provider NoSuch; it has cpu, cuda. `--providers cpu` serves without it.',
  });
  assert.throws(() => checkedProviders('m.onnx', ['cuda'], supported, join(libraries, 'none')), {
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
    'Cuda',
    'This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP has been explicitly disabled by the user.',
    'm.onnx: a part of the model would run on the CPU, which --providers Cuda does not have. Add it: --providers Cuda,cpu',
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
    "Could not find an implementation for Add(6) node with name ''",
    "m.onnx: its operator Add is of operator set 6, and onnxruntime runs those from 7 on. Convert it, in Python: onnx.version_converter.convert_version(onnx.load('old.onnx'), 17)",
    true,
  ],
  [
    'cpu',
    "Could not find an implementation for Max(13) node with name '/top/Max'",
    'm.onnx: this onnxruntime cannot run its operator Max (/top/Max) with the types of its inputs. Add a Cast before it, for example to FP32, and one behind it, or export it with another opset_version.',
    true,
  ],
  [
    'cpu',
    "This is an invalid model. Type Error: Type 'tensor(uint8)' of input parameter (x) of operator (Sin) in node () is invalid.",
    'm.onnx: its operator Sin takes no uint8 in its operator set. Add a Cast before it, for example to FP32, or export it with a newer opset_version.',
    true,
  ],
  [
    'cpu',
    'Unsupported data type: 26',
    'm.onnx: an input or an output has the type FLOAT8E8M0, which onnxruntime-node cannot pass on. Add a Cast to the model, for example to FP32.',
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
    const given = providers.split(',');
    const attempt = { path: 'm.onnx', given, providers: given.map((name) => name.toLowerCase()) };
    const error = explainSessionError(attempt, new Error(thrown));
    assert.deepEqual([error.message, error.permanent], [message, permanent]);
  });
