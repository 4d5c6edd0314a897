/** Fails calls that wait longer than the queue timeout, with one timer for all lines: the oldest call has waited longest. */
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import type { Call } from './call.js';
import type { Lines } from './lines.js';

export class QueueTimeout {
  readonly #lines: Lines<Call>;
  /** Takes a call out of its line, and fails it. */
  readonly #fail: (call: Call) => void;
  #limitMs: number;
  #timer: LimitTimer | null = null;

  constructor(lines: Lines<Call>, limitMs: number, fail: (call: Call) => void) {
    this.#lines = lines;
    this.#limitMs = limitMs;
    this.#fail = fail;
  }

  /** Changes the limit, also for calls that wait already. */
  set limitMs(limitMs: number) {
    this.#limitMs = limitMs;
    this.watchAnew();
  }

  /** Sets the timer if a call waits. */
  watch(): void {
    const head = this.#lines.findOldest();
    if (head === null || this.#timer !== null) return;
    const dueMs = head.acceptedAtMs + this.#limitMs - performance.now();
    this.#timer = startLimit(Math.max(1, dueMs), () => this.#sweep());
  }

  /** Sets the timer again: an older call may be first now. */
  watchAnew(): void {
    this.stop();
    this.watch();
  }

  stop(): void {
    this.#timer?.stop();
    this.#timer = null;
  }

  #sweep(): void {
    this.#timer = null;
    const nowMs = performance.now();
    for (let call = this.#lines.findOldest(); call !== null; call = this.#lines.findOldest()) {
      if (nowMs - call.acceptedAtMs < this.#limitMs) break;
      this.#fail(call);
    }
    this.watch();
  }
}
