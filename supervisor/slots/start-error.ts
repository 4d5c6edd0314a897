/** Turns the death of a worker into an error: for requests that wait for it, and for a slot that latches or is failing. */
import { ServeError, type ErrorCode } from '../../protocol/errors.js';
import { isMemoryHint } from '../processes/exit-report.js';
import type { WorkerDeath } from '../processes/worker-death.js';

/** The error of a worker that could not start: the reason that it sent, or how it died. */
export function startError(death: WorkerDeath): ServeError {
  return latchError(death, true);
}

/** The error of a slot that latches: the reason that its last worker sent, or how it died. `repeats`: the next one would die of the same. */
export function latchError(death: WorkerDeath, repeats: boolean): ServeError {
  if (!repeats) return failingError(death);
  const isInit = death.fatal?.code === 'SERVE_INIT_FAILED';
  return asError(isInit ? 'SERVE_INIT_FAILED' : 'SERVE_APP_INVALID', death);
}

/** The error of a slot whose starts failed too often: the next one may succeed. */
export function failingError(death: WorkerDeath): ServeError {
  return asError(START_ERRORS.find((code) => code === death.fatal?.code) ?? 'SERVE_CRASH_LOOP', death);
}

const START_ERRORS: readonly ErrorCode[] = ['SERVE_APP_INVALID', 'SERVE_INIT_FAILED', 'SERVE_INIT_TIMEOUT'];

function asError(code: ErrorCode, death: WorkerDeath): ServeError {
  const detail = death.fatal?.message ?? (death.hint === '' ? death.how : `${death.how}; ${death.hint}`);
  return new ServeError(code, undefined, { detail, kind: lackedMemory(death) ? 'out-of-memory' : '' });
}

/** Errors of runtimes and libraries that mean too little memory. */
const NO_MEMORY =
  /Array buffer allocation failed| raised: (?:[\w.]*MemoryError\b|RuntimeError: CUDA out of memory\b)|CUDA_ERROR_OUT_OF_MEMORY|Failed to allocate memory for requested buffer/;

/** Whether the worker ended because of too little memory, on the machine or on its GPU. */
export function lackedMemory({ fatal, hint }: WorkerDeath): boolean {
  return isMemoryHint(hint) || NO_MEMORY.test(fatal?.message ?? '');
}
