/** The core of a worker's handle, which its parts share: process, channel, state, timers, notes for the report of its death. */
import type { Channel } from '../../protocol/wire/channel.js';
import type { DeathNotes } from './death-notes.js';
import type { WorkerProcess } from './spawn-worker.js';
import type { Timers } from './timers.js';
import { nextState, type LifeEvent, type WorkerState } from './worker-lifecycle.js';

export interface WorkerCore {
  readonly process: WorkerProcess;
  readonly channel: Channel;
  readonly state: CurrentState;
  readonly timers: Timers;
  readonly notes: DeathNotes;
}

/** The state of one worker, and since when. */
export class CurrentState {
  readonly #onTransition: (from: WorkerState, to: WorkerState, event: LifeEvent) => void;
  #name: WorkerState = 'spawning';
  #sinceMs = performance.now();
  #wasReady = false;

  constructor(onTransition: (from: WorkerState, to: WorkerState, event: LifeEvent) => void) {
    this.#onTransition = onTransition;
  }

  get name(): WorkerState {
    return this.#name;
  }

  /** Time in the present state. */
  get ms(): number {
    return performance.now() - this.#sinceMs;
  }

  get wasReady(): boolean {
    return this.#wasReady;
  }

  /** Changes the state; nothing else does. @throws SERVE_PROTOCOL if the event makes no sense in this state */
  enter(event: LifeEvent): void {
    const from = this.#name;
    const to = nextState(from, event);
    this.#name = to;
    if (from === to) return;
    this.#sinceMs = performance.now();
    if (to === 'ready') this.#wasReady = true;
    this.#onTransition(from, to, event);
  }
}
