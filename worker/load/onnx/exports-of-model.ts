/**
 * Makes exports of an ONNX model, as a Banana app has them.
 *
 * Before: the runtime of the front has found onnxruntime-node, and gives its path and the operator's providers in the
 * environment. After: `onnx-model.ts` answers the calls.
 */
import type { AppFile, Exports } from '../loader.js';
import { explainSessionError } from './explain-session-error.js';
import { OnnxModel } from './onnx-model.js';
import { requireOnnxruntime, type Onnxruntime } from './onnxruntime.js';
import { checkProviders, providersOf, sessionOptions } from './session-options.js';
import { isBatchable, signatureOfSession } from './session-signature.js';

/** Most calls of a batch, and most rows of a run, unless the operator sets `--batch-size`. */
const BATCH_SIZE = 8;

/** @throws AppLoadError that says what is wrong with the model or the options, and the cure */
export async function exportsOfModel(
  { app: path, batchSize, device }: AppFile,
  { BANANA_ONNXRUNTIME = 'onnxruntime-node', BANANA_PROVIDERS = '' }: NodeJS.ProcessEnv,
): Promise<Exports> {
  const onnxruntime = requireOnnxruntime(BANANA_ONNXRUNTIME);
  const providers = providersOf(BANANA_PROVIDERS, device);
  checkProviders(path, providers, onnxruntime.listSupportedBackends());
  const session = await createSession(onnxruntime, path, sessionOptions(providers, device));
  const { signature } = signatureOfSession(path, session);
  const maxRows = batchSize === 0 ? BATCH_SIZE : batchSize;
  const model = new OnnxModel(onnxruntime, session, signature, maxRows);
  const exports = { signature, inference: (input: unknown) => model.infer(input) };
  if (!isBatchable(signature)) return exports;
  return {
    ...exports,
    inferenceBatch: (inputs: readonly unknown[]) => model.inferBatch(inputs),
    config: { batchSize: BATCH_SIZE, maxBatchDelay: 0, repeatable: true },
  };
}

async function createSession(
  { InferenceSession }: typeof Onnxruntime,
  path: string,
  options: Onnxruntime.InferenceSession.SessionOptions,
): Promise<Onnxruntime.InferenceSession> {
  try {
    return await InferenceSession.create(path, options);
  } catch (thrown) {
    throw explainSessionError(path, thrown);
  }
}
