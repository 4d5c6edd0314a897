/**
 * The life of one slot, as data: its states, what can happen to it, and the table that `slot.ts` obeys. `nextSlotState` is
 * pure; it throws for a pair that cannot happen. The states are printed into docs/lifecycle.md.
 */
import type { ServeError } from '../../protocol/errors.js';
import type { WorkerHandle } from '../processes/worker-handle.js';

/** A state of a slot, with what is true only in it. */
export type SlotState =
  | { readonly name: 'waiting' }
  | { readonly name: 'live'; readonly worker: WorkerHandle }
  | { readonly name: 'renewing'; readonly worker: WorkerHandle; readonly next: WorkerHandle | null }
  | { readonly name: 'replacing'; readonly worker: WorkerHandle }
  | { readonly name: 'backoff'; readonly untilMs: number }
  /** `neverFits`: for lack of memory; the memory budget or the model has to change. */
  | { readonly name: 'latched'; readonly error: ServeError; readonly neverFits: boolean }
  | { readonly name: 'closing'; readonly worker: WorkerHandle }
  | { readonly name: 'closed' };

export type SlotStateName = SlotState['name'];

export const SLOT_STATES: Readonly<Record<SlotStateName, string>> = {
  waiting: 'It waits for its turn to start.',
  live: 'It has a worker.',
  renewing: 'Its worker continues until the next one is ready.',
  replacing: 'Its worker finishes its calls and ends; then the next one starts.',
  backoff: 'Its worker died; the next start waits for a pause to end.',
  latched: 'Its workers never started, or can never fit into the memory budget: none is started again.',
  closing: 'It was retired, or the server stops; its workers finish their calls.',
  closed: 'It was retired, or the server has stopped.',
};

export const SLOT_EVENTS = {
  started:
    'Its device, `--spawn-concurrency` and the memory budgets allow a start, and the process is started.',
  death:
    'Its worker dies, and the next one may start at once: it died during a call, idle after a finished one, on request, or out of memory while it started, and another one leaves.',
  badDeath: 'Its worker dies at any other time, or its process cannot be started: the next one has to wait.',
  lastDeath:
    'As `badDeath`, but no worker was ever ready (with `--watch`: of this code) and the restart limit is reached or the cause would repeat; or a start will never fit into the memory budget: no worker follows.',
  pauseOver: 'The pause before the next start is over.',
  nextReady: 'The next worker is ready.',
  nextDies: 'The next worker dies before it is ready, or its process cannot be started.',
  nextAlone: 'Its worker dies, or gets no more calls, while the next one starts.',
  leaves:
    'Its worker gets no more calls, because one of them does not end or its app is in doubt; on a GPU nothing changes until it dies.',
  replace:
    'The app has changed, or a slot that is latched or failing is to try again: it starts again with a new worker.',
  renew:
    'Replace its worker without a gap; on a GPU, or if the worker is not ready, the slot gets `replace` instead.',
  retire: 'Fewer workers are wanted, or the server stops; a process of the slot exists.',
  end: 'Fewer workers are wanted, or the server stops, and no process of the slot exists; or its last one has ended.',
} as const;

export type SlotEvent = keyof typeof SLOT_EVENTS;

/** An event that is missing in a state cannot happen in it. */
const TRANSITIONS: Readonly<Record<SlotStateName, Readonly<Partial<Record<SlotEvent, SlotStateName>>>>> = {
  waiting: {
    started: 'live',
    badDeath: 'backoff',
    lastDeath: 'latched',
    replace: 'waiting',
    retire: 'closing', // a worker that was replaced is still ending
    end: 'closed',
  },
  live: {
    death: 'waiting',
    badDeath: 'backoff',
    lastDeath: 'latched',
    leaves: 'waiting',
    replace: 'replacing',
    renew: 'renewing',
    retire: 'closing',
  },
  renewing: {
    started: 'renewing',
    death: 'waiting',
    leaves: 'waiting',
    nextReady: 'live',
    nextDies: 'live',
    nextAlone: 'live',
    replace: 'replacing',
    renew: 'renewing',
    retire: 'closing',
  },
  replacing: { death: 'waiting', replace: 'replacing', retire: 'closing' },
  backoff: { pauseOver: 'waiting', replace: 'waiting', retire: 'closing', end: 'closed' },
  latched: { replace: 'waiting', retire: 'closing', end: 'closed' },
  closing: { death: 'closing', replace: 'closing', retire: 'closing', end: 'closed' },
  closed: { replace: 'closed', end: 'closed' },
};

/** @throws Error if the event cannot happen in this state */
export function nextSlotState(state: SlotStateName, event: SlotEvent): SlotStateName {
  const next = TRANSITIONS[state][event];
  if (next !== undefined) return next;
  throw new Error(`slot event "${event}" in state "${state}"`);
}
