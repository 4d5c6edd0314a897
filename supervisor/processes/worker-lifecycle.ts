/**
 * The life of one worker process, as data. `nextState` is pure and total: it returns the next state, or throws
 * for a pair that makes no sense (a bug here, or a worker that breaks the protocol: that worker is killed).
 * The states are printed into docs/lifecycle.md.
 */
import { protocolError } from '../../protocol/errors.js';

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

/** `null`: the pair makes no sense. */
const TRANSITIONS: Readonly<Record<WorkerState, Readonly<Record<LifeEvent, WorkerState | null>>>> = {
  spawning: row('loading', null, null, null, 'stopping', 'finishing', 'stopping', 'killing'),
  loading: row(null, 'initializing', null, null, 'stopping', 'finishing', 'stopping', 'killing'),
  initializing: row(null, null, 'warming', 'ready', 'stopping', 'finishing', 'stopping', 'killing'),
  warming: row(null, null, null, 'ready', 'stopping', 'finishing', 'stopping', 'killing'),
  ready: row(null, null, null, null, 'stopping', 'finishing', 'stopping', 'killing'),
  finishing: row(null, null, null, null, 'stopping', 'finishing', 'stopping', 'killing'),
  // The worker may have sent these before it read the stop.
  stopping: row(
    'stopping',
    'stopping',
    'stopping',
    'stopping',
    'stopping',
    'stopping',
    'stopping',
    'killing',
  ),
  killing: row('killing', 'killing', 'killing', 'killing', 'killing', 'killing', 'killing', 'killing'),
  gone: {
    hello: null,
    loaded: null,
    warmUp: null,
    ready: null,
    fatal: null,
    retireRequested: 'gone',
    stopRequested: 'gone',
    killRequested: 'gone',
    ended: null,
  },
};

function row(
  hello: WorkerState | null,
  loaded: WorkerState | null,
  warmUp: WorkerState | null,
  ready: WorkerState | null,
  fatal: WorkerState,
  retireRequested: WorkerState,
  stopRequested: WorkerState,
  killRequested: WorkerState,
): Record<LifeEvent, WorkerState | null> {
  return {
    hello,
    loaded,
    warmUp,
    ready,
    fatal,
    retireRequested,
    stopRequested,
    killRequested,
    ended: 'gone',
  };
}

/** @throws SERVE_PROTOCOL if the event makes no sense in this state */
export function nextState(state: WorkerState, event: LifeEvent): WorkerState {
  const next = TRANSITIONS[state][event];
  if (next !== null) return next;
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
