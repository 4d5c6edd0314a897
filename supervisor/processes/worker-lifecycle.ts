/**
 * The life of one worker process, as data. `nextState` is pure and total: it returns the next state, or throws
 * for a pair that makes no sense (a bug here, or a worker that breaks the protocol: that worker is killed).
 * The states are printed into docs/lifecycle.md.
 */
import { protocolError } from '../../protocol/errors.js';
import type { Channel } from '../../protocol/wire/channel.js';
import type { Timers } from '../machine/limit-timer.js';
import type { WorkerProcess } from './spawn-worker.js';
import type { DeathNotes } from './worker-death.js';

export const WORKER_STATES = {
  spawning: 'The process was started; no message has come from it yet.',
  loading: 'It has said hello and imports the app.',
  initializing: 'The app is imported; init and the example run.',
  warming: 'init has run; a model without code runs once, before any call.',
  ready: 'It takes calls; idle or busy by the calls it holds.',
  finishing: 'Another worker takes its slot: it finishes the calls it holds and gets no more.',
  stopping:
    'It was asked to stop, or reported a fatal error; it gets no more calls and has limited time to end.',
  killing: 'SIGKILL was sent to its process group.',
  gone: 'Its last frame was read and its exit is known.',
} as const;

export const WORKER_EVENTS = {
  hello: 'The worker reports its protocol version.',
  loaded: 'The worker has imported the app.',
  warmUp: 'The worker begins its warm-up.',
  ready: 'The worker has run init and the example.',
  fatal: 'The worker reports that it cannot go on, and why.',
  retireRequested: 'The front replaces it by another worker.',
  stopRequested: 'The front asks it to stop.',
  killRequested: 'A limit passed, or the protocol was broken.',
  ended: 'Its stream ended and its exit is known.',
} as const;

export type WorkerState = keyof typeof WORKER_STATES;
export type LifeEvent = keyof typeof WORKER_EVENTS;

/** Ways to the end, which are open in every state before it. */
const TO_END = {
  fatal: 'stopping',
  retireRequested: 'finishing',
  stopRequested: 'stopping',
  killRequested: 'killing',
  ended: 'gone',
} as const;

/** A pair that is left out makes no sense. */
const TRANSITIONS: Readonly<Record<WorkerState, Readonly<Partial<Record<LifeEvent, WorkerState>>>>> = {
  spawning: { hello: 'loading', ...TO_END },
  loading: { loaded: 'initializing', ...TO_END },
  initializing: { warmUp: 'warming', ready: 'ready', ...TO_END },
  warming: { ready: 'ready', ...TO_END },
  ready: TO_END,
  finishing: TO_END,
  // The worker may have sent anything before it read the stop.
  stopping: { ...staying('stopping'), killRequested: 'killing', ended: 'gone' },
  killing: { ...staying('killing'), ended: 'gone' },
  gone: { retireRequested: 'gone', stopRequested: 'gone', killRequested: 'gone' },
};

function staying(state: WorkerState): Partial<Record<LifeEvent, WorkerState>> {
  return Object.fromEntries(Object.keys(WORKER_EVENTS).map((event) => [event, state]));
}

/** @throws SERVE_PROTOCOL if the event makes no sense in this state */
export function nextState(state: WorkerState, event: LifeEvent): WorkerState {
  const next = TRANSITIONS[state][event];
  if (next !== undefined) return next;
  throw protocolError(`event "${event}" in state "${state}"`);
}

const START_PHASES: Partial<Record<WorkerState, string>> = {
  spawning: 'starting the process',
  loading: 'importing the app',
  initializing: 'running init or the example',
  warming: 'running the warm-up',
};

/** Describes the activity of a worker on its way to `ready`, for people; null in other states. */
export function startPhase(state: WorkerState): string | null {
  return START_PHASES[state] ?? null;
}

/** The state of one worker, and since when. */
export class CurrentState {
  readonly #onTransition: (from: WorkerState, to: WorkerState, event: LifeEvent) => void;
  /** Only `enter` changes it. */
  name: WorkerState = 'spawning';
  readonly #spawnedAtMs = performance.now();
  #sinceMs = this.#spawnedAtMs;
  #wasReady = false;

  constructor(onTransition: (from: WorkerState, to: WorkerState, event: LifeEvent) => void) {
    this.#onTransition = onTransition;
  }

  /** Time in the present state. */
  get ms(): number {
    return performance.now() - this.#sinceMs;
  }

  get uptimeMs(): number {
    return performance.now() - this.#spawnedAtMs;
  }

  get wasReady(): boolean {
    return this.#wasReady;
  }

  /** Changes the state; nothing else does. @throws SERVE_PROTOCOL if the event makes no sense in this state */
  enter(event: LifeEvent): void {
    const from = this.name;
    const to = nextState(from, event);
    this.name = to;
    if (from === to) return;
    this.#sinceMs = performance.now();
    if (to === 'ready') this.#wasReady = true;
    this.#onTransition(from, to, event);
  }
}

/** The core of a worker's handle, which its parts share. */
export interface WorkerCore {
  readonly process: WorkerProcess;
  readonly channel: Channel;
  readonly state: Readonly<CurrentState>;
  readonly timers: Timers;
  readonly notes: DeathNotes;
}
