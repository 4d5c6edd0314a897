/**
 * Measures the run timeout of one worker's batches, with one timer for all of them, which is re-armed only when it fires.
 * A batch's clock starts when it becomes the first one, again when it begins, and stands still while all its calls wait for
 * their clients. Whether it has begun is looked up when the time seems to be over.
 */
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';

export interface Clocked {
  /** When it began; before that, when it became the first batch. */
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

  /** `running` looks up the batch that runs or should begin; `onTimeout` is called once per batch that exceeds the limit. */
  constructor(limitMs: number, running: () => T | null, onTimeout: (running: T) => void) {
    this.#limitMs = limitMs;
    this.#running = running;
    this.#onTimeout = onTimeout;
  }

  /** Called when a batch becomes the first one. */
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
    if (running === null) return; // the next batch arms it again
    const leftMs = this.#limitMs - runTimeMs(running, performance.now());
    if (leftMs > 0) this.#timer = startLimit(Math.max(1, leftMs), this.#check);
    else this.#onTimeout(running);
  };
}

/** The time that it has run, without its grace and its pauses. */
export function runTimeMs({ beganAtMs, graceMs, pausedMs, pausedSinceMs }: Clocked, nowMs: number): number {
  const pausedNowMs = pausedSinceMs === null ? 0 : nowMs - pausedSinceMs;
  return nowMs - beganAtMs - graceMs - pausedMs - pausedNowMs;
}

/** Ends a pause, which does not count. */
export function resume(clocked: Clocked): void {
  if (clocked.pausedSinceMs === null) return;
  clocked.pausedMs += performance.now() - clocked.pausedSinceMs;
  clocked.pausedSinceMs = null;
}

/** Starts again with the whole limit. */
export function restart(clocked: Clocked): void {
  clocked.pausedSinceMs = null;
  clocked.pausedMs = performance.now() - clocked.beganAtMs - clocked.graceMs;
}
