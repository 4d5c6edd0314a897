/** Turns the death of a worker into an error: for requests that wait for it, and for a slot that latches. */
import { ServeError } from '../../protocol/errors.js';
import { isMemoryHint } from '../processes/exit-report.js';
import type { WorkerDeath } from '../processes/worker-death.js';

/** The error of a worker that could not start: the reason that it sent, or how it died. */
export function startError(death: WorkerDeath): ServeError {
  return latchError(death, true);
}

/** The error of a slot that latches: the reason that its last worker sent, or how it died. `repeats`: the next one would die of the same. */
export function latchError(death: WorkerDeath, repeats: boolean): ServeError {
  const detail = death.fatal?.message ?? (death.hint === '' ? death.how : `${death.how}; ${death.hint}`);
  const kind = lackedMemory(death) ? 'out-of-memory' : '';
  if (!repeats) return new ServeError('SERVE_CRASH_LOOP', undefined, { detail, kind });
  const isInit = death.fatal?.code === 'SERVE_INIT_FAILED';
  return new ServeError(isInit ? 'SERVE_INIT_FAILED' : 'SERVE_APP_INVALID', undefined, { detail, kind });
}

/** Errors of runtimes and libraries that mean too little memory. */
const NO_MEMORY =
  /Array buffer allocation failed| raised: (?:[\w.]*MemoryError\b|RuntimeError: CUDA out of memory\b)|CUDA_ERROR_OUT_OF_MEMORY|Failed to allocate memory for requested buffer/;

/** Whether the worker ended because of too little memory, on the machine or on its GPU. */
export function lackedMemory({ fatal, hint }: WorkerDeath): boolean {
  return isMemoryHint(hint) || NO_MEMORY.test(fatal?.message ?? '');
}
