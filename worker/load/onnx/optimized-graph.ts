/** The optimized graph of a model, which the front has found and checked. */
import { statSync } from 'node:fs';
import type { Device } from '../../../protocol/wire/messages.js';
import { describeThrown } from '../../../protocol/errors.js';
import type { Onnxruntime } from './onnxruntime.js';
import { optimizedOptions } from './session.js';

/** The front passes it as JSON in the variable BANANA_OPTIMIZED. */
export interface CheckedGraph {
  readonly graph: string;
  /** The files of the model, as they were when the front compared them with the graph. */
  readonly madeOf: readonly { readonly path: string; readonly bytes: number; readonly modifiedMs: number }[];
}

/** Null if there is none, or if the model has changed since: the graph would answer as the model of before. */
export function optimizedGraph(text: string): string | null {
  if (text === '') return null;
  const { graph, madeOf } = JSON.parse(text) as CheckedGraph;
  const isSame = madeOf.every(({ path, bytes, modifiedMs }) => {
    const now = statSync(path, { throwIfNoEntry: false });
    return now?.size === bytes && now.mtimeMs === modifiedMs;
  });
  return isSame ? graph : null;
}

/** Null if the graph cannot be loaded: the model itself can. */
export async function sessionOfGraph(
  { InferenceSession }: typeof Onnxruntime,
  model: string,
  graph: string,
  device: Device,
): Promise<Onnxruntime.InferenceSession | null> {
  try {
    return await InferenceSession.create(graph, optimizedOptions(device));
  } catch (thrown) {
    const { message } = describeThrown(thrown);
    process.stderr.write(
      `${graph} cannot be loaded, so the original is: ${message} Run: banana-serve optimize ${model}\n`,
    );
    return null;
  }
}
