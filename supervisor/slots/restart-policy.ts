/**
 * Decides what follows a worker's death: past and death in, decision out. Pure.
 *
 * - Backoff is for starts that fail, never for inputs that kill. A worker that died during a call, or idle with a
 *   call finished (an input may kill a moment after its answer), is replaced at once, every time, whatever happened
 *   before: a client that sends such inputs must not keep the calls of others waiting.
 * - A death before `ready`, or idle with no call finished, is a failed start. Failed starts in a row wait 500 ms,
 *   doubled up to a minute, times a random 0.5 to 1, so that slots on one device do not start together.
 * - Once a worker was ready, starts go on for ever, whatever the error: what the app needs may come back. More failed ones
 *   in a row than `restartLimit` only make the slot `failing`.
 * - Before that, and where a change of the code starts it again, more of them latch the slot. So does a load error that would
 *   repeat, at once, and before any worker was ready an error that import or `init` threw twice in a row, unless the network
 *   or a scarce resource was to blame.
 * - A worker that never fits into the memory budget latches its slot always: no start helps before one of the two changes.
 */

import { ServeError, type ErrorCode } from '../../protocol/errors.js';
import { isMemoryHint, thrownAtStart, type WorkerDeath } from '../processes/worker-death.js';

export interface RestartRules {
  /** Failed starts in a row after which a worker is started again. */
  readonly restartLimit: number;
  /** Whether a worker was ready before, in any slot. */
  readonly everReady: boolean;
  /** Whether code that cannot start waits for its next change (`--watch`). */
  readonly awaitsChange: boolean;
}

/** The decision after a death, and the facts that the next one needs. */
export interface Decision {
  /** Pause before the next start; null: none follows. */
  readonly pauseMs: number | null;
  /** The error of a slot that is latched, or failing: more starts in a row have failed than the limit allows; else null. */
  readonly failure: ServeError | null;
  /** Failed starts in a row: no worker between them finished a call or died during one. */
  readonly failedStarts: number;
  /** Text of the error that import or `init` threw in the last of them; null if they threw none, or one that may not repeat. */
  readonly thrown: string | null;
}

export const NEW_SLOT: Decision = { pauseMs: 0, failure: null, failedStarts: 0, thrown: null };

export const FIRST_DELAY_MS = 500;
export const MAX_DELAY_MS = 60_000;

/** `random`: from 0 to 1. */
export function afterDeath(
  past: Decision,
  death: WorkerDeath,
  rules: RestartRules,
  random: number,
): Decision {
  const { restartLimit, everReady, awaitsChange } = rules;
  const thrown = thrownAtStart(death);
  const history = { failedStarts: past.failedStarts + 1, thrown };
  const isPermanent = death.fatal?.permanent ?? false;
  const isSameAgain = !everReady && thrown !== null && thrown === past.thrown;
  const goesOn = everReady && !awaitsChange;
  if (neverFits(death) || isSameAgain || (isPermanent && !goesOn))
    return { ...history, pauseMs: null, failure: startError(death) };
  if (!isPermanent && !isFailedStart(death)) return NEW_SLOT;
  const isFailing = history.failedStarts > restartLimit;
  const pauseMs = isFailing && !goesOn ? null : backoffMs(history.failedStarts, random);
  return { ...history, pauseMs, failure: isFailing ? failingError(death) : null };
}

/** Whether the worker needs more memory than the budget has. */
export function neverFits({ cause }: WorkerDeath): boolean {
  return cause === 'over the memory budget';
}

function isFailedStart({ during, finishedCalls }: WorkerDeath): boolean {
  return during === 'start' || (during === 'idle' && finishedCalls === 0);
}

/** `failedStarts` counts the present one. */
function backoffMs(failedStarts: number, random: number): number {
  const limit = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failedStarts - 1));
  return limit * (0.5 + random / 2);
}

/** The error of a worker that could not start: the reason that it sent, or how it died. The next one would die of the same. */
export function startError(death: WorkerDeath): ServeError {
  const isInit = death.fatal?.code === 'SERVE_INIT_FAILED';
  return asError(isInit ? 'SERVE_INIT_FAILED' : 'SERVE_APP_INVALID', death);
}

/** The error of a slot whose starts failed too often: the next one may succeed. */
function failingError(death: WorkerDeath): ServeError {
  return asError(START_ERRORS.find((code) => code === death.fatal?.code) ?? 'SERVE_CRASH_LOOP', death);
}

const START_ERRORS: readonly ErrorCode[] = ['SERVE_APP_INVALID', 'SERVE_INIT_FAILED', 'SERVE_INIT_TIMEOUT'];

function asError(code: ErrorCode, death: WorkerDeath): ServeError {
  const detail = death.fatal?.message ?? (death.hint === '' ? death.how : `${death.how}; ${death.hint}`);
  const kind = lackedMemory(death) || neverFits(death) ? 'out-of-memory' : '';
  return new ServeError(code, undefined, { detail, kind });
}

/** Errors of runtimes and libraries that mean too little memory. */
const NO_MEMORY =
  /Array buffer allocation failed| raised: (?:[\w.]*MemoryError\b|RuntimeError: CUDA out of memory\b)|CUDA_ERROR_OUT_OF_MEMORY|Failed to allocate memory for requested buffer/;

/** Whether the worker ended because of too little memory, on the machine or on its GPU. */
export function lackedMemory({ fatal, hint }: WorkerDeath): boolean {
  return isMemoryHint(hint) || NO_MEMORY.test(fatal?.message ?? '');
}
