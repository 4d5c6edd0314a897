/** Sessions: where a model runs, on how many threads, and why it cannot. */
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
