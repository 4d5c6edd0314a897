import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFacts } from '../../../../supervisor/runtimes/onnx/optimized/optimized-files.js';
import { externalLocations } from '../../../../supervisor/runtimes/onnx/optimized/external-files.js';
import { identity, onnxBytes, type OnnxModel, type OnnxWeights } from '../../../helpers/onnx-model.js';
import { appFolder } from '../../../worker/app-folder.js';

const weights = (name: string, location: string): OnnxWeights => ({
  name,
  type: 'FP32',
  shape: [2],
  bytes: null,
  external: { location, offset: 0, length: 8 },
});

/** The second weights lie behind more than one piece of the file. */
const MODEL: OnnxModel = {
  ...identity('FP32'),
  weights: [
    weights('a', 'a.bin'),
    { name: 'inside', type: 'FP32', shape: [50_000], bytes: new Uint8Array(200_000).fill(0xff) },
    weights('b', 'sub/b.bin'),
    weights('c', 'a.bin'),
  ],
};

test('the files of weights outside of a model are found, each once', (t) => {
  const file = join(appFolder(t, {}), 'm.onnx');
  writeFileSync(file, onnxBytes(MODEL));
  assert.deepEqual(externalLocations(file), ['a.bin', 'sub/b.bin']);
});

test('a model that is cut short, or a file that is none, has no files of weights to name', (t) => {
  const file = join(appFolder(t, {}), 'm.onnx');
  const bytes = onnxBytes(MODEL);
  for (const content of [bytes.subarray(0, bytes.length - 3), Buffer.from('no model'), Buffer.alloc(0)]) {
    writeFileSync(file, content);
    assert.deepEqual(externalLocations(file), []);
  }
});

test(
  'weights in what is no file are not read: a device would have no end',
  { timeout: 60_000 },
  async (t) => {
    const file = join(appFolder(t, {}), 'm.onnx');
    writeFileSync(file, onnxBytes({ ...MODEL, weights: [weights('a', '/dev/null')] }));
    await assert.rejects(modelFacts(file), /^Error: \/dev\/null is no file$/);
  },
);
