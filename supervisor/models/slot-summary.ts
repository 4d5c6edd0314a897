/** Summary of a model's slots for its callers: its health, whether a worker may still come, and when. Pure. */
import { ServeError } from '../../protocol/errors.js';
import type { Slot } from '../slots/slot.js';
import type { SlotState } from '../slots/slot-lifecycle.js';
import { startError } from '../slots/start-error.js';
import { LATCHED_RETRY_S, type Standstill } from './standstill.js';

type SlotWithState = Pick<Slot, 'state'>;

/**
 * `idle`: no worker is ready, since none was needed; the first call starts one. It counts as ready. `failing`: it was ready
 * once, and its starts fail more often in a row than allowed; they go on, and calls are refused until one succeeds.
 */
export type Health = 'starting' | 'ready' | 'idle' | 'unhealthy' | 'failing' | 'draining';

/** Assumed time of import and init before one was measured. */
const FIRST_INIT_MS = 1000;

export interface HealthFacts {
  readonly isDraining: boolean;
  readonly readyWorkers: number;
  /** Null: a call may be held for a worker. */
  readonly standstill: Standstill['state'] | null;
  /** Its scaling has left it without a worker, and no start has failed since. */
  readonly isIdle: boolean;
  /** A worker of the present code was ready. */
  readonly hasServed: boolean;
  /** A worker of the present code died. */
  readonly hasLost: boolean;
}

export function healthOf(facts: HealthFacts): Health {
  if (facts.isDraining) return 'draining';
  if (facts.readyWorkers > 0) return 'ready';
  if (facts.standstill === 'failing') return 'failing';
  if (facts.standstill === 'latched') return 'unhealthy';
  if (facts.isIdle) return 'idle';
  return facts.hasServed || facts.hasLost ? 'unhealthy' : 'starting';
}

/** Whether the server ends, or the model: no slot will have a worker again. */
export function areClosing(slots: readonly SlotWithState[]): boolean {
  return slots.every(({ state }) => state.name === 'closing' || state.name === 'closed');
}

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
export function isBetween({ state }: SlotWithState): boolean {
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
  slots: readonly SlotWithState[],
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
