/**
 * The run timeout of one worker's calls, with one timer for all of them: it is re-armed only when it fires.
 * A call's clock starts when its turn has come, anew when it begins, and stands still while a stream waits for its
 * reader. Whether it has begun is looked up when the time seems to be over.
 */

import { startLimit, type LimitTimer } from '../machine/limit-timer.js';

export interface ClockedCall {
  /** When the call began; before that, when its turn came. */
  beganAtMs: number;
  /** Time added to its limit: the time it may take to begin. */
  graceMs: number;
  /** Time spent waiting for the reader so far. */
  pausedMs: number;
  /** When its present wait began; null if it is not waiting. */
  pausedSinceMs: number | null;
}

export class RunClock<T extends ClockedCall> {
  readonly #limitMs: number;
  readonly #running: () => T | null;
  readonly #onTimeout: (call: T) => void;
  #timer: LimitTimer | null = null;

  /** `running` looks up which call runs or should begin now; `onTimeout` is called once per call that exceeds the limit. */
  constructor(limitMs: number, running: () => T | null, onTimeout: (call: T) => void) {
    this.#limitMs = limitMs;
    this.#running = running;
    this.#onTimeout = onTimeout;
  }

  /** Call this when a call's turn comes. */
  start(): void {
    this.#timer ??= startLimit(this.#limitMs, this.#check);
  }

  stop(): void {
    this.#timer?.stop();
    this.#timer = null;
  }

  readonly #check = (): void => {
    this.#timer = null;
    const call = this.#running();
    if (call === null) return; // the next turn arms it again
    const leftMs = this.#limitMs - runTimeMs(call, performance.now());
    if (leftMs > 0) this.#timer = startLimit(Math.max(1, leftMs), this.#check);
    else this.#onTimeout(call);
  };
}

/** The time that the call itself has used, beyond its grace. */
export function runTimeMs(call: ClockedCall, nowMs: number): number {
  const pausedNowMs = call.pausedSinceMs === null ? 0 : nowMs - call.pausedSinceMs;
  return nowMs - call.beganAtMs - call.graceMs - call.pausedMs - pausedNowMs;
}

/** The call goes on; the time it waited is not its own. */
export function resume(call: ClockedCall): void {
  if (call.pausedSinceMs === null) return;
  call.pausedMs += performance.now() - call.pausedSinceMs;
  call.pausedSinceMs = null;
}

/** The call has something new to do, and all its time for that. */
export function restart(call: ClockedCall): void {
  call.pausedSinceMs = null;
  call.pausedMs = performance.now() - call.beganAtMs - call.graceMs;
}
