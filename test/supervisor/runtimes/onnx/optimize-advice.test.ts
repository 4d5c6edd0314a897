/** The advice to share weights, for models whose weights lie outside of them. */
import assert from 'node:assert/strict';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { optimizeAdvice } from '../../../../supervisor/runtimes/onnx/onnx.js';
import { identity, writeOnnx } from '../../../helpers/onnx-model.js';
import { appFolder } from '../../../worker/app-folder.js';

const NOT_OPTIMIZED = { graph: null, madeOf: [], why: null };

/** A model with weights of this size in `weights.bin`. */
function modelWith(t: TestContext, bytes: number): string {
  const folder = appFolder(t, {});
  const external = { location: 'weights.bin', offset: 0, length: bytes };
  writeFileSync(join(folder, 'weights.bin'), '');
  truncateSync(join(folder, 'weights.bin'), bytes);
  const weights = [{ name: 'w', type: 'FP32', shape: [bytes / 4], bytes: null, external }] as const;
  return writeOnnx(join(folder, 'm.onnx'), { ...identity('FP32'), weights });
}

test('several workers of a model with over 64 MiB of weights: one line names the command', (t) => {
  const model = modelWith(t, 65 * 2 ** 20);
  assert.deepEqual(optimizeAdvice(model, NOT_OPTIMIZED, null, 2), [
    `each of 2 workers keeps its own copy of the weights of ${model}, 68 MB. They share one after: banana-serve optimize ${model}`,
  ]);
});

test('there is no advice for one worker, for small weights, and for workers that are not on the CPU alone', (t) => {
  const large = modelWith(t, 65 * 2 ** 20);
  const small = modelWith(t, 2 ** 20);
  assert.deepEqual(optimizeAdvice(large, NOT_OPTIMIZED, null, 1), []);
  assert.deepEqual(optimizeAdvice(small, NOT_OPTIMIZED, 'cpu', 2), []);
  assert.deepEqual(optimizeAdvice(large, NOT_OPTIMIZED, 'cuda,cpu', 2), []);
});
