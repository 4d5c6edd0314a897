/** Runs an action by a deadline, which may be set several times: the earliest one counts. */
import type { LimitTimer } from '../machine/limit-timer.js';
import type { Timers } from './timers.js';

export class Deadline {
  readonly #timers: Timers;
  readonly #action: () => void;
  #atMs = Infinity;
  #timer: LimitTimer | null = null;

  constructor(timers: Timers, action: () => void) {
    this.#timers = timers;
    this.#action = action;
  }

  /** Runs the action after this time at the latest. There is never more than one timer for it. */
  within(delayMs: number): void {
    const atMs = performance.now() + delayMs;
    if (atMs >= this.#atMs) return;
    this.#atMs = atMs;
    this.#stop();
    this.#timer = this.#timers.start(delayMs, this.#action);
  }

  /** Prevents the action, even if `within` is called later. */
  cancel(): void {
    this.#atMs = -Infinity;
    this.#stop();
  }

  #stop(): void {
    if (this.#timer !== null) this.#timers.stop(this.#timer);
  }
}
