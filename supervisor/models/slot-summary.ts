/**
 * Summary of a model's slots for its callers: whether a worker may still come, when, and what callers, `/readyz` and `/status`
 * are told while none can. Pure.
 */
import { ServeError, type ErrorCode } from '../../protocol/errors.js';
import { formatMs } from '../options/units.js';
import type { Slot } from '../slots/slot.js';
import type { SlotState } from '../slots/slot-lifecycle.js';
import { startError } from '../slots/restart-policy.js';

/** Assumed time of import and init before one was measured. */
const FIRST_INIT_MS = 1000;

/** The error of calls while no workers are wanted. */
export function noneWantedError(): ServeError {
  const message = 'This model has no workers: it was scaled to 0, or registered without any.';
  return new ServeError('SERVE_NOT_READY', message, { retryAfterS: LATCHED_RETRY_S });
}

/** Whether the slot has a ready worker, or is latched or failing; its previous worker may still be ending its calls. */
export function hasStarted({ state, failure }: Pick<Slot, 'state' | 'failure'>): boolean {
  return failure !== null || (state.name === 'live' && state.worker.state === 'ready');
}

/** Whether the slot is where its start has led it, unless a worker dies, a failing one starts or a change is asked for. */
export function isSettled(slot: Pick<Slot, 'state' | 'failure' | 'worker' | 'workers'>): boolean {
  return hasStarted(slot) && slot.workers.every((worker) => worker === slot.worker);
}

/** Whether another worker is to take the place of the present one. */
export function isBetween({ state }: Pick<Slot, 'state'>): boolean {
  return state.name === 'renewing' || state.name === 'replacing';
}

/** Whether another worker is to take the place of the present one, or one of before is still ending its calls. */
export function isChanging(slot: Pick<Slot, 'state' | 'worker' | 'workers'>): boolean {
  return isBetween(slot) || slot.workers.some((worker) => worker !== slot.worker);
}

/** The errors of workers that ran out of memory while they started, by the last death of each slot. */
export function memoryErrors(slots: readonly Pick<Slot, 'lastDeath'>[]): ServeError[] {
  return slots
    .flatMap(({ lastDeath }) => (lastDeath?.during === 'start' ? startError(lastDeath) : []))
    .filter(({ kind }) => kind === 'out-of-memory');
}

/** Estimated time until a first worker is ready, from the nearest backoff and the last init; null if none will come. */
export function readyInMs(
  slots: readonly Pick<Slot, 'state'>[],
  lastInitMs: number | null,
  nowMs: number,
): number | null {
  const waits = slots.map(({ state }) => startsInMs(state, nowMs)).filter((waitMs) => waitMs !== null);
  return waits.length === 0 ? null : Math.min(...waits) + (lastInitMs ?? FIRST_INIT_MS);
}

function startsInMs(state: SlotState, nowMs: number): number | null {
  switch (state.name) {
    case 'backoff':
      return state.untilMs - nowMs;
    case 'waiting':
    case 'live':
    case 'renewing':
    case 'replacing':
      return 0;
    case 'latched':
    case 'closing':
    case 'closed':
      return null;
  }
}

export interface Standstill {
  /** `latched`: no worker is started any more. `failing`: it was ready once, and its starts go on. */
  readonly state: 'latched' | 'failing';
  /** Why one of its slots has no worker. */
  readonly error: ServeError;
}

/** Whether every slot of a model is latched or failing; null if a call may be held for one of them. `kept`: those not retired. */
export function findStandstill(kept: readonly Pick<Slot, 'failure' | 'state'>[]): Standstill | null {
  const errors = failuresOf(kept);
  const error = errors.at(-1);
  if (error === undefined || errors.length < kept.length) return null;
  return { state: kept.every(({ state }) => state.name === 'latched') ? 'latched' : 'failing', error };
}

/** The errors of the slots that are latched or failing, in their order. */
export function failuresOf(slots: readonly Pick<Slot, 'failure'>[]): ServeError[] {
  return slots.flatMap(({ failure }) => failure ?? []);
}

const CAUSES: Readonly<Partial<Record<ErrorCode, string>>> = {
  SERVE_APP_INVALID: 'the app cannot be loaded',
  SERVE_INIT_FAILED: 'its init or its example fails',
  SERVE_INIT_TIMEOUT: 'its init takes longer than --init-timeout',
};
const USUAL_CAUSE = 'its workers die before they have answered a call';

/** The error of calls meanwhile. `readyInMs`: until a worker may be ready; null if none will be. */
export function refusalOf(standstill: Standstill, readyInMs: number | null, watch: boolean): ServeError {
  const waitS = standstill.state === 'latched' || readyInMs === null ? LATCHED_RETRY_S : readyInMs / 1000;
  const message = describeStandstill(standstill, readyInMs, watch);
  return new ServeError('SERVE_NOT_READY', message, { retryAfterS: Math.max(1, Math.ceil(waitS)) });
}

/** Retry-After of calls that are refused until an operator acts. */
export const LATCHED_RETRY_S = 30;

/** Says what is wrong, what follows, and what to do, without the app's words. */
export function describeStandstill(
  { state, error }: Standstill,
  readyInMs: number | null,
  watch: boolean,
): string {
  const what = `No worker of this model can start: ${CAUSES[error.code] ?? USUAL_CAUSE}.`;
  if (state === 'latched') {
    const again = watch ? 'save it' : 'start the server again or send it SIGHUP';
    return `${what} The log and /status say why; correct it, then ${again}.`;
  }
  const next = readyInMs === null ? '' : `, in ${formatMs(readyInMs)} at the earliest`;
  return `${what} The server goes on trying, and takes calls again once one starts${next}. The log and /status say why; SIGHUP tries at once.`;
}
