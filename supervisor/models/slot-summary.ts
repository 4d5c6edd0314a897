/** What the states of a model's slots mean for its callers: is there hope of a worker, and when. Nothing here changes anything. */
import { ServeError, shuttingDown } from '../../protocol/errors.js';
import type { Slot } from '../slots/slot.js';
import type { SlotState } from '../slots/slot-state.js';

/** A slot, as far as its prospects go. */
type SlotWithState = Pick<Slot, 'state'>;

export type Health = 'starting' | 'ready' | 'unhealthy' | 'draining';

/** A guess at how long import and init take, before any was measured. */
const FIRST_INIT_MS = 1000;

/** A caller that is refused for want of workers may come back then: an operator has to act first. */
const LATCHED_RETRY_S = 30;

export interface HealthFacts {
  readonly isDraining: boolean;
  readonly readyWorkers: number;
  readonly isLatched: boolean;
  /** A worker of the present code was ready. */
  readonly hasServed: boolean;
  /** A worker of the present code died. */
  readonly hasLost: boolean;
}

export function healthOf(facts: HealthFacts): Health {
  if (facts.isDraining) return 'draining';
  if (facts.readyWorkers > 0) return 'ready';
  return facts.isLatched || facts.hasServed || facts.hasLost ? 'unhealthy' : 'starting';
}

/** Why no worker will ever come; null if one may. */
export function noWorkerError(slots: readonly SlotWithState[], isLatched: boolean): ServeError | null {
  if (slots.every(({ state }) => state.name === 'closing' || state.name === 'closed')) return shuttingDown();
  return isLatched ? allLatchedError() : null;
}

/** What callers are told once every slot has latched. */
export function allLatchedError(): ServeError {
  return new ServeError('SERVE_NOT_READY', undefined, { retryAfterS: LATCHED_RETRY_S });
}

/** What callers are told while nobody asks for workers. */
export function noneWantedError(): ServeError {
  const message = 'No worker of this model is wanted: it was scaled to 0, or never given any.';
  return new ServeError('SERVE_NOT_READY', message, { retryAfterS: LATCHED_RETRY_S });
}

/** Whether the slot has a ready worker or has given up; one that it had before may still be ending its calls. */
export function hasStarted({ state }: SlotWithState): boolean {
  return state.name === 'latched' || (state.name === 'live' && state.worker.state === 'ready');
}

/** Whether nothing more will happen to the slot unless a worker dies or somebody asks for it. */
export function isSettled(slot: Pick<Slot, 'state' | 'worker' | 'workers'>): boolean {
  return hasStarted(slot) && slot.workers.every((worker) => worker === slot.worker);
}

/** Why slots have given up, in their order. */
export function latchErrors(slots: readonly SlotWithState[]): ServeError[] {
  return slots.flatMap(({ state }) => (state.name === 'latched' ? state.error : []));
}

/** When a first worker may be ready: from the nearest backoff and the last init; null if none is to come. A guess. */
export function readyInMs(slots: readonly SlotWithState[], lastInitMs: number | null, nowMs: number): number | null {
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
