/** Fails jobs that wait longer than the queue timeout, with one timer for all lines: the oldest job has waited longest. */
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import type { Job } from './job.js';
import type { Lines } from './lines.js';

export class QueueTimeout {
  readonly #lines: Lines<Job>;
  /** Takes a job out of its line, and fails it. */
  readonly #fail: (job: Job) => void;
  #limitMs: number;
  #timer: LimitTimer | null = null;

  constructor(lines: Lines<Job>, limitMs: number, fail: (job: Job) => void) {
    this.#lines = lines;
    this.#limitMs = limitMs;
    this.#fail = fail;
  }

  /** Changes the limit, also for jobs that wait already. */
  set limitMs(limitMs: number) {
    this.#limitMs = limitMs;
    this.watchAnew();
  }

  /** Sets the timer if a job waits. */
  watch(): void {
    const head = this.#lines.findOldest();
    if (head === null || this.#timer !== null) return;
    const dueMs = head.acceptedAtMs + this.#limitMs - performance.now();
    this.#timer = startLimit(Math.max(1, dueMs), () => this.#sweep());
  }

  /** Sets the timer again: an older job may be first now. */
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
    for (let job = this.#lines.findOldest(); job !== null; job = this.#lines.findOldest()) {
      if (nowMs - job.acceptedAtMs < this.#limitMs) break;
      this.#fail(job);
    }
    this.watch();
  }
}
