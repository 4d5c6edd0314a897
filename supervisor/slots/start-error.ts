/** A worker's death before it was ready, as an error for whoever waits for the worker. */
import { ServeError } from '../../protocol/errors.js';
import { isMemoryHint } from '../processes/exit-report.js';
import type { WorkerDeath } from '../processes/worker-death.js';

/** Why a worker could not start: what it said of itself, or how it died. */
export function startError(death: WorkerDeath): ServeError {
  return latchError(death, true);
}

/** Why the slot is given up: what its last worker said of itself, or how it died. */
export function latchError(death: WorkerDeath, repeats: boolean): ServeError {
  const detail = death.fatal?.message ?? (death.hint === '' ? death.how : `${death.how}; ${death.hint}`);
  const kind = lackedMemory(death) ? 'out-of-memory' : '';
  if (!repeats) return new ServeError('SERVE_CRASH_LOOP', undefined, { detail, kind });
  const isInit = death.fatal?.code === 'SERVE_INIT_FAILED';
  return new ServeError(isInit ? 'SERVE_INIT_FAILED' : 'SERVE_APP_INVALID', undefined, { detail, kind });
}

/** How runtimes say that there was no memory: by a text, by the name of the class, or by that of a library and its words. */
const NO_MEMORY =
  /Array buffer allocation failed| raised: (?:[\w.]*MemoryError\b|RuntimeError: CUDA out of memory\b)/;

function lackedMemory({ fatal, hint }: WorkerDeath): boolean {
  return isMemoryHint(hint) || NO_MEMORY.test(fatal?.message ?? '');
}
