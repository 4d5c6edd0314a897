/**
 * Makes exports of an ONNX model, as a Banana app has them.
 *
 * Before: the runtime of the front has found onnxruntime-node, and gives its path and the operator's providers in the
 * environment. After: `onnx-model.ts` answers the calls.
 */
import type { Signature } from '../../../protocol/values/tensor.js';
import { WARM_UP, type Exports } from '../../adapters/loaded-app.js';
import type { InferenceContext, InitContext } from '../../api/types.js';
import { formatOf } from '../../formats/read-input.js';
import type { AppFile } from '../load-module.js';
import { checkedOutput, embeddingExports } from './embedding.js';
import { mayJoin, rowsClaim, unnamedText, readModelWords } from './model-words.js';
import { OnnxModel } from './onnx-model.js';
import { librariesOf, requireOnnxruntime } from './onnxruntime.js';
import { checkedProviders, CPU, providersOf } from './providers.js';
import { createSession, optimizedGraph, sessionOfGraph, sessionOptions } from './session.js';
import { leftOutText, signatureOfSession, signatureText } from './session-signature.js';
import type { Tensors } from './rows.js';
import { warmUpOf } from './warm-up.js';

/** The name of such models in the Open Inference Protocol. */
const PLATFORM = 'onnx_onnxv1';

/** Most calls of a batch, and most rows of a run, unless the operator sets `--batch-size`. */
const BATCH_SIZE = 8;

/** @throws AppLoadError that says what is wrong with the model or the options, and the cure */
export async function exportsOfModel(
  { app: path, batchSize, asksForBatches = false, device }: AppFile,
  {
    BANANA_ONNXRUNTIME = 'onnxruntime-node',
    BANANA_PROVIDERS = '',
    BANANA_OPTIMIZED = '',
    BANANA_TOKENIZERS = '',
  }: NodeJS.ProcessEnv,
): Promise<Exports> {
  const onnxruntime = requireOnnxruntime(BANANA_ONNXRUNTIME);
  const given = providersOf(BANANA_PROVIDERS, device);
  const providers = checkedProviders(
    path,
    given,
    onnxruntime.listSupportedBackends(),
    librariesOf(BANANA_ONNXRUNTIME),
  );
  const graph = providers.join() === CPU ? optimizedGraph(BANANA_OPTIMIZED) : null;
  const session =
    (graph === null ? null : await sessionOfGraph(onnxruntime, path, graph, device)) ??
    (await createSession(onnxruntime, { path, providers, given }, sessionOptions(providers, device)));
  const words = readModelWords(path);
  const { signature, leftOut } = signatureOfSession(path, session, words);
  if (BANANA_TOKENIZERS !== '') {
    const outputs = [checkedOutput(path, signature)];
    const model = new OnnxModel(onnxruntime, session, { ...signature, outputs }, null);
    return embeddingModel(path, model, signature, BANANA_TOKENIZERS);
  }
  const claim = rowsClaim(signature, words);
  const joins = mayJoin(claim, asksForBatches);
  const maxRows = batchSize === 0 ? BATCH_SIZE : batchSize;
  const model = new OnnxModel(onnxruntime, session, signature, joins ? maxRows : null);
  const exports = {
    platform: PLATFORM,
    signature,
    inference: (input: unknown, ctx: InferenceContext) => model.infer(input, isJson(ctx)),
    init: ({ log, worker }: InitContext) => {
      if (worker.index === 0) log.info(`${signatureText(signature)}; runs on ${providers.join(', ')}`);
      // For a batch size that has no effect, the front has a warning.
      if (worker.index === 0 && claim === 'unnamed' && batchSize === 0) log.info(unnamedText(signature));
      if (leftOut.length > 0) log.warn(leftOutText(leftOut, words.operators));
    },
    [WARM_UP]: warmUpOf(path, model, signature),
  };
  if (!joins) return exports;
  return {
    ...exports,
    inferenceBatch: (inputs: readonly unknown[], ctxs: readonly InferenceContext[]) =>
      model.inferBatch(inputs, ctxs.map(isJson)),
    config: { batchSize: BATCH_SIZE, maxBatchDelay: 0, repeatable: true },
  };
}

function embeddingModel(path: string, model: OnnxModel, signature: Signature, tokenizers: string): Exports {
  const infer = (inputs: unknown): Promise<Tensors> => model.infer(inputs) as Promise<Tensors>;
  return {
    platform: PLATFORM,
    ...embeddingExports(path, signature, tokenizers, infer),
    [WARM_UP]: warmUpOf(path, model, signature),
    config: { batchSize: BATCH_SIZE, maxBatchDelay: 0, repeatable: true },
  };
}

function isJson({ contentType }: InferenceContext): boolean {
  return formatOf(contentType) === 'json';
}
