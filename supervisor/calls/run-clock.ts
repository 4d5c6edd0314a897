/**
 * Measures the run timeout of one worker's batches, with one timer for all of them, which is re-armed only when it fires.
 * A batch's clock starts when it should begin, again when it begins, and stands still while all its calls wait for
 * their clients, unless other calls need the worker meanwhile: then the wait counts too. Whether it has begun is looked up
 * when the time seems to be over.
 */
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';

export interface Clocked {
  /** When it began; before that, when it should have begun. */
  beganAtMs: number;
  /** Time added to its limit: the time it may take to begin. */
  graceMs: number;
  /** Time spent waiting for clients so far. */
  pausedMs: number;
  /** When its present wait began; null if it is not waiting. */
  pausedSinceMs: number | null;
  /** Part of its waits for clients, the present one left out, in which other calls waited for its worker. */
  heldUpMs: number;
  /** Since when other calls wait for its worker while it waits for its clients; null if they do not. */
  heldUpSinceMs: number | null;
}

export class RunClock<T extends Clocked> {
  readonly #limitMs: number;
  readonly #running: () => readonly T[];
  readonly #onTimeout: (running: T) => void;
  #timer: LimitTimer | null = null;
  #dueAtMs = 0;

  /** `running` looks up the batches that run or should begin, without those that `onTimeout` was called for. */
  constructor(limitMs: number, running: () => readonly T[], onTimeout: (running: T) => void) {
    this.#limitMs = limitMs;
    this.#running = running;
    this.#onTimeout = onTimeout;
  }

  /** Called when a batch should begin. */
  start(): void {
    if (this.#timer === null) this.#arm(this.#limitMs);
  }

  /** Called when more time counts than before: the limit of this batch may be over earlier. */
  hasten(running: T): void {
    const nowMs = performance.now();
    const leftMs = this.#limitMs - usedMs(running, nowMs);
    if (this.#timer === null || nowMs + leftMs >= this.#dueAtMs) return;
    this.stop();
    this.#arm(leftMs);
  }

  stop(): void {
    this.#timer?.stop();
    this.#timer = null;
  }

  /** Looks now for batches that exceed the limit. */
  checkNow(): void {
    this.stop();
    this.#check();
  }

  readonly #check = (): void => {
    this.#timer = null;
    const nowMs = performance.now();
    let nextMs = Infinity;
    const over: T[] = [];
    for (const one of this.#running()) {
      const leftMs = this.#limitMs - usedMs(one, nowMs);
      if (leftMs > 0) nextMs = Math.min(nextMs, leftMs);
      else over.push(one);
    }
    if (nextMs < Infinity) this.#arm(nextMs); // otherwise the next batch arms it again
    for (const one of over) this.#onTimeout(one);
  };

  #arm(leftMs: number): void {
    const delayMs = Math.max(1, leftMs);
    this.#dueAtMs = performance.now() + delayMs;
    this.#timer = startLimit(delayMs, this.#check);
  }
}

/** The time that counts towards the limit: waits for clients count only while other calls wait. */
function usedMs(clocked: Clocked, nowMs: number): number {
  const { heldUpMs, heldUpSinceMs } = clocked;
  return runTimeMs(clocked, nowMs) + (heldUpSinceMs === null ? 0 : heldUpMs + nowMs - heldUpSinceMs);
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

/** Notes whether other calls wait for the worker while it waits for its clients. Returns whether that has just begun. */
export function setHeldUp(clocked: Clocked, isHeldUp: boolean): boolean {
  const sinceMs = clocked.heldUpSinceMs;
  if (isHeldUp === (sinceMs !== null)) return false;
  const nowMs = performance.now();
  if (sinceMs !== null) clocked.heldUpMs += nowMs - sinceMs;
  clocked.heldUpSinceMs = isHeldUp ? nowMs : null;
  return isHeldUp;
}

/** Starts again with the whole limit; the time in which it held up other calls stays counted. */
export function restart(clocked: Clocked): void {
  clocked.pausedSinceMs = null;
  clocked.pausedMs = performance.now() - clocked.beganAtMs - clocked.graceMs;
}
