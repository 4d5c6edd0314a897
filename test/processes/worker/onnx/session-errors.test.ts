/** Models that cannot be loaded: one line each, with the cure, through the real onnxruntime. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppLoadError } from '../../../../worker/load/explain-load-error.js';
import { librariesOf } from '../../../../worker/load/onnx/onnxruntime.js';
import { identity, onnxBytes, writeOnnx, type OnnxModel } from '../../../helpers/onnx-model.js';
import { appFolder } from '../../../worker/app-folder.js';
import { loadModel, ONNXRUNTIME } from './load-model.js';

/** Adds weights that are in another file. */
function withWeights(location: string, length = 8): OnnxModel {
  const external = { location, offset: 0, length };
  return {
    ...identity('FP32'),
    nodes: [{ op: 'Add', inputs: ['x', 'w'], outputs: ['y'] }],
    weights: [{ name: 'w', type: 'FP32', shape: [length / 4], bytes: null, external }],
  };
}

/** Writes a model's file; it lies in a folder of its own, `model`. */
type Write = (path: string) => void;

function model(given: OnnxModel): Write {
  return (path) => writeOnnx(path, given);
}

const EMBEDDED: OnnxModel = {
  inputs: [{ name: 'x', type: 'FP32', shape: ['n'] }],
  outputs: [{ name: 'y', type: 'FP32', shape: ['n'] }],
  nodes: [{ op: 'Add', inputs: ['x', 'w'], outputs: ['y'] }],
  weights: [{ name: 'w', type: 'FP32', shape: [10 ** 12], bytes: Buffer.alloc(8) }],
};

const REFUSED: readonly (readonly [what: string, write: Write, message: RegExp])[] = [
  ['an empty file', (path) => writeFileSync(path, ''), /^the file is empty\. Copy or export it again\.$/],
  [
    'a file that was cut off',
    (path) => writeFileSync(path, onnxBytes(identity('FP32')).subarray(0, -20)),
    /^the file is not whole, or no ONNX model\. Copy or export it again\.$/,
  ],
  [
    'a pointer of Git LFS',
    (path) => writeFileSync(path, 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n'),
    /^the file is only a pointer of Git LFS to the model\. Run: git lfs pull$/,
  ],
  [
    'an unknown operator set',
    model({ ...identity('FP32'), opset: 99 }),
    /^the model uses operator set 99, and this onnxruntime has those up to (\d+)\. Export it with opset_version=\1, or install a newer onnxruntime-node\.$/,
  ],
  [
    'an unknown operator',
    model({ ...identity('FP32'), nodes: [{ op: 'Hocus', inputs: ['x'], outputs: ['y'] }] }),
    /^its operator Hocus is unknown to this onnxruntime \(operator set 17\)\./,
  ],
  [
    'a type that onnxruntime-node lacks',
    model(identity('BF16')),
    /^an input or an output has the type BF16, which onnxruntime-node cannot pass on\. Add a Cast to the model, for example to FP32\.$/,
  ],
  ...(['UINT2', 'INT2', 'FLOAT8E8M0', 'FLOAT4'] as const).map((type): (typeof REFUSED)[number] => [
    `an unused input of ${type}`,
    model({ ...identity('FP32'), inputs: [...identity('FP32').inputs, { name: 'z', type, shape: [1] }] }),
    new RegExp(`has the type ${type === 'FLOAT4' ? 'FLOAT4E2M1' : type}, which onnxruntime-node cannot`),
  ]),
  [
    'an input that is no tensor',
    model({
      inputs: [{ name: 'all', type: 'FP32', shape: [1], isSequence: true }],
      outputs: [{ name: 'count', type: 'INT64', shape: [] }],
      nodes: [{ op: 'SequenceLength', inputs: ['all'], outputs: ['count'] }],
    }),
    /^the input all is a sequence or a map; only models with tensors as inputs can be served\.$/,
  ],
  [
    'weights in a file that is missing',
    model(withWeights('w.bin')),
    /^its weights are in another file, which is missing: \/.*\/model\/w\.bin\. Copy it there\.$/,
  ],
  [
    'weights in a file that is too short',
    (path) => {
      writeFileSync(join(dirname(path), 'w.bin'), Buffer.alloc(4));
      writeOnnx(path, withWeights('w.bin'));
    },
    /^the file of its weights is not whole: it has 4 bytes, and w needs 8 of them or more\. Copy it again\.$/,
  ],
  [
    'weights that are a link out of the folder',
    (path) => {
      writeFileSync(join(dirname(path), '../blob'), Buffer.alloc(8));
      symlinkSync('../blob', join(dirname(path), 'w.bin'));
      writeOnnx(path, withWeights('w.bin'));
    },
    /^its weights w\.bin are outside of its folder, in \/.*\/blob, as links of a cache are; onnxruntime refuses that\. Copy both without links: cp -L$/,
  ],
  [
    'weights at an absolute path',
    model(withWeights('/w.bin')),
    /^it names the file of its weights by an absolute path\. Save it again with the weights beside it\.$/,
  ],
  [
    'more than can be allocated',
    model(EMBEDDED),
    /^its weights w have 4000000000000 bytes, more than a model may hold\. Export it with external data\.$/,
  ],
];

/** The error of a model in a folder of its own, below the test's. */
async function errorOf(t: TestContext, write: Write, providers = ''): Promise<AppLoadError> {
  const path = join(appFolder(t, {}), 'model/m.onnx');
  mkdirSync(dirname(path));
  write(path);
  const error: unknown = await loadModel(path, { providers }).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof AppLoadError, String(error));
  assert.ok(error.message.startsWith(`${path}: `), error.message);
  return Object.assign(error, { message: error.message.slice(path.length + 2) });
}

for (const [what, write, message] of REFUSED)
  test(`a model with ${what} is refused for good, with the cure`, async (t) => {
    const error = await errorOf(t, write);
    assert.match(error.message, message);
    assert.equal(error.permanent, true);
  });

/** The libraries of CUDA may be installed. */
const HAS_CUDA = existsSync(join(librariesOf(ONNXRUNTIME), 'libonnxruntime_providers_cuda.so'));

const MISPLACED: readonly (readonly [providers: string, message: RegExp])[] = [
  [
    'nosuch,cpu',
    /^this onnxruntime-node has no execution provider nosuch; it has cpu, .*\. `--providers cpu` serves without it\.$/,
  ],
  [
    'cuda,cpu',
    /^onnxruntime cannot use cuda: npm has left its libraries out\. Run: ONNXRUNTIME_NODE_INSTALL=cuda12 npm rebuild onnxruntime-node\. `--providers cpu` serves without it\.$/,
  ],
];

for (const [providers, message] of MISPLACED)
  test(`--providers ${providers} is refused where that is missing`, { skip: HAS_CUDA }, async (t) => {
    const error = await errorOf(t, model(identity('FP32')), providers);
    assert.match(error.message, message);
    assert.equal(error.permanent, true);
  });

test('a worker with a GPU wants cuda, unless the operator says otherwise', { skip: HAS_CUDA }, async (t) => {
  const path = writeOnnx(join(appFolder(t, {}), 'm.onnx'), identity('FP32'));
  await assert.rejects(loadModel(path, { gpu: '0' }), /onnxruntime cannot use cuda/);
  const { inference } = await loadModel(path, { gpu: '0', providers: 'cpu' });
  assert.deepEqual(await inference([1, 2]), { y: new Float32Array([1, 2]) });
});

test('weights in another file beside the model are read', async (t) => {
  const path = join(appFolder(t, {}), 'm.onnx');
  writeFileSync(join(dirname(path), 'w.bin'), Buffer.from(new Float32Array([10, 20]).buffer));
  const { inference } = await loadModel(writeOnnx(path, withWeights('w.bin')));
  assert.deepEqual(await inference([1, 2]), { y: new Float32Array([11, 22]) });
});
