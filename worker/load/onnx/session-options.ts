/** Options of a session: where a model runs, and on how many threads. */
import type { Device } from '../../../protocol/wire/messages.js';
import { AppLoadError } from '../explain-load-error.js';
import type { Onnxruntime } from './onnxruntime.js';

const CPU = 'cpu';

/** Names of execution providers, in order of preference. `given`: those of the operator, separated by commas; may be empty. */
export function providersOf(given: string, { gpu }: Device): readonly string[] {
  if (given !== '') return given.split(',');
  return gpu === null ? [CPU] : ['cuda', CPU]; // with cuda alone, arithmetic on shapes would have no place
}

/** onnxruntime ignores an unknown name if another follows. @throws AppLoadError that lists the known ones */
export function checkProviders(
  path: string,
  providers: readonly string[],
  supported: readonly { readonly name: string }[],
): void {
  const names = supported.map(({ name }) => name);
  const unknown = providers.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  throw new AppLoadError(
    `${path}: --providers: this onnxruntime-node has no ${unknown}; it has ${names.join(', ')}.`,
  );
}

/** The threads of a run wait asleep: spinning costs several times the CPU of a short run, also between runs. */
export function sessionOptions(
  providers: readonly string[],
  { threads }: Device,
): Onnxruntime.InferenceSession.SessionOptions {
  return {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    extra: {
      session: {
        intra_op: { allow_spinning: '0' },
        inter_op: { allow_spinning: '0' },
        ...(providers.includes(CPU) ? {} : { disable_cpu_ep_fallback: '1' }),
      },
    },
  };
}
