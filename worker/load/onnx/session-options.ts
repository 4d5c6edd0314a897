/** Options of a session: where a model runs, and on how many threads. */
import type { Device } from '../../../protocol/wire/messages.js';
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
