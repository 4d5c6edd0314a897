/** Sessions: where a model runs, on how many threads, from which graph, and why it cannot. */
import { statSync } from 'node:fs';
import { describeThrown } from '../../../protocol/errors.js';
import type { Device } from '../../../protocol/wire/messages.js';
import { explainSessionError, type SessionAttempt } from './explain-session-error.js';
import type { Onnxruntime } from './onnxruntime.js';
import { CPU } from './providers.js';

/** Only fatal errors are printed: all others are also thrown, and then explained. */
const SILENT = 4;

/** The threads of a run wait asleep: spinning costs several times the CPU of a short run, also between runs. */
export function sessionOptions(
  providers: readonly string[],
  { threads }: Device,
): Onnxruntime.InferenceSession.SessionOptions {
  return {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: SILENT,
    extra: {
      session: {
        intra_op: { allow_spinning: '0' },
        inter_op: { allow_spinning: '0' },
        ...(providers.includes(CPU) ? {} : { disable_cpu_ep_fallback: '1' }),
      },
    },
  };
}

/** Nothing is left to optimize in an optimized graph, and a second time would make copies of the weights. */
export function optimizedOptions(device: Device): Onnxruntime.InferenceSession.SessionOptions {
  return { ...sessionOptions([CPU], device), graphOptimizationLevel: 'disabled' };
}

/** `file`: that of the model, or of a graph of it. @throws AppLoadError */
export async function createSession(
  { InferenceSession }: typeof Onnxruntime,
  attempt: SessionAttempt,
  options: Onnxruntime.InferenceSession.SessionOptions,
  file = attempt.path,
): Promise<Onnxruntime.InferenceSession> {
  try {
    return await InferenceSession.create(file, options);
  } catch (thrown) {
    throw explainSessionError(attempt, thrown);
  }
}

/**
 * Returns the optimized graph that the front has found and checked; it passes it as JSON in the variable BANANA_OPTIMIZED, with
 * the files of the model as they were then. Null if there is none, or if the model has changed since: the graph would answer
 * as the model of before.
 */
export function optimizedGraph(text: string): string | null {
  if (text === '') return null;
  const { graph, madeOf } = JSON.parse(text) as {
    readonly graph: string;
    readonly madeOf: readonly {
      readonly path: string;
      readonly bytes: number;
      readonly modifiedMs: number;
    }[];
  };
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
