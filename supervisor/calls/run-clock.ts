/**
 * The run timeout of one worker's batches, with one timer for all of them: it is re-armed only when it fires.
 * A batch's clock starts when its turn has come, anew when it begins, and stands still while all that it has left to do
 * is up to clients. Whether it has begun is looked up when the time seems to be over.
 */

import { startLimit, type LimitTimer } from '../machine/limit-timer.js';

export interface Clocked {
  /** When it began; before that, when its turn came. */
  beganAtMs: number;
  /** Time added to its limit: the time it may take to begin. */
  graceMs: number;
  /** Time spent waiting for clients so far. */
  pausedMs: number;
  /** When its present wait began; null if it is not waiting. */
  pausedSinceMs: number | null;
}

export class RunClock<T extends Clocked> {
  readonly #limitMs: number;
  readonly #running: () => T | null;
  readonly #onTimeout: (running: T) => void;
  #timer: LimitTimer | null = null;

  /** `running` looks up which batch runs or should begin now; `onTimeout` is called once per batch that exceeds the limit. */
  constructor(limitMs: number, running: () => T | null, onTimeout: (running: T) => void) {
    this.#limitMs = limitMs;
    this.#running = running;
    this.#onTimeout = onTimeout;
  }

  /** Call this when a batch's turn comes. */
  start(): void {
    this.#timer ??= startLimit(this.#limitMs, this.#check);
  }

  stop(): void {
    this.#timer?.stop();
    this.#timer = null;
  }

  readonly #check = (): void => {
    this.#timer = null;
    const running = this.#running();
    if (running === null) return; // the next turn arms it again
    const leftMs = this.#limitMs - runTimeMs(running, performance.now());
    if (leftMs > 0) this.#timer = startLimit(Math.max(1, leftMs), this.#check);
    else this.#onTimeout(running);
  };
}

/** The time that it has used itself, beyond its grace. */
export function runTimeMs({ beganAtMs, graceMs, pausedMs, pausedSinceMs }: Clocked, nowMs: number): number {
  const pausedNowMs = pausedSinceMs === null ? 0 : nowMs - pausedSinceMs;
  return nowMs - beganAtMs - graceMs - pausedMs - pausedNowMs;
}

/** It goes on; the time that it waited is not its own. */
export function resume(clocked: Clocked): void {
  if (clocked.pausedSinceMs === null) return;
  clocked.pausedMs += performance.now() - clocked.pausedSinceMs;
  clocked.pausedSinceMs = null;
}

/** It has something new to do, and all its time for that. */
export function restart(clocked: Clocked): void {
  clocked.pausedSinceMs = null;
  clocked.pausedMs = performance.now() - clocked.beganAtMs - clocked.graceMs;
}
