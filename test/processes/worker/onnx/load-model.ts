/** Loads a model in this process as a worker does. */
import { createRequire } from 'node:module';
import type { Signature } from '../../../../protocol/values/tensor.js';
import type { WARM_UP, WarmUp } from '../../../../worker/adapters/loaded-app.js';
import { exportsOfModel } from '../../../../worker/load/onnx/exports-of-model.js';

export const ONNXRUNTIME = createRequire(import.meta.url).resolve('onnxruntime-node');

export interface LoadedModel {
  readonly signature: Signature;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly inference: (input: unknown) => Promise<unknown>;
  readonly inferenceBatch?: (inputs: readonly unknown[]) => Promise<unknown[]>;
  readonly init: (ctx: Parameters<WarmUp['run']>[0]) => void;
  readonly [WARM_UP]: WarmUp;
}

export interface Loading {
  /** As the operator gives them; empty for none. */
  readonly providers?: string;
  readonly gpu?: string | null;
  /** 0 if the operator gives none. */
  readonly batchSize?: number;
  /** Whether the operator asks for batches of this model. */
  readonly asksForBatches?: boolean;
  /** An optimized graph of the model, which runs in its place. */
  readonly graph?: string | null;
}

export async function loadModel(
  app: string,
  { providers = '', gpu = null, batchSize = 0, asksForBatches = false, graph = null }: Loading = {},
): Promise<LoadedModel> {
  const env = {
    BANANA_ONNXRUNTIME: ONNXRUNTIME,
    BANANA_PROVIDERS: providers,
    BANANA_OPTIMIZED: graph === null ? '' : JSON.stringify({ graph, madeOf: [] }),
  };
  const file = { app, device: { gpu, threads: 1 }, batchSize, asksForBatches };
  const exports = (await exportsOfModel(file, env)) as unknown as OwnExports;
  const { inference, inferenceBatch } = exports;
  const batched = inferenceBatch && {
    inferenceBatch: (inputs: readonly unknown[]) =>
      inferenceBatch(
        inputs,
        inputs.map(() => OF_JSON),
      ),
  };
  return { ...exports, inference: (input) => inference(input, OF_JSON), ...batched };
}

/** The part of a call's context that a model reads. */
const OF_JSON = { contentType: 'application/json' };

type OwnExports = LoadedModel & {
  inference(input: unknown, ctx: object): Promise<unknown>;
  inferenceBatch?(inputs: readonly unknown[], ctxs: readonly object[]): Promise<unknown[]>;
};
