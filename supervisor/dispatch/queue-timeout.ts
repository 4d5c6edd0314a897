/** Bounds how long a job may wait in line, with one timer for all lines: the job that came first has waited longest. */
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import type { Job } from './job.js';
import type { Lines } from './lines.js';

export class QueueTimeout {
  readonly #lines: Lines<Job>;
  /** Takes a job out of the line, and tells it. */
  readonly #fail: (job: Job) => void;
  #limitMs: number;
  #timer: LimitTimer | null = null;

  constructor(lines: Lines<Job>, limitMs: number, fail: (job: Job) => void) {
    this.#lines = lines;
    this.#limitMs = limitMs;
    this.#fail = fail;
  }

  /** Changes the limit, for the jobs that wait now too. */
  set limitMs(limitMs: number) {
    this.#limitMs = limitMs;
    this.watchAnew();
  }

  /** Notes that a job waits. */
  watch(): void {
    const head = this.#lines.findOldest();
    if (head === null || this.#timer !== null) return;
    const dueMs = head.acceptedAtMs + this.#limitMs - performance.now();
    this.#timer = startLimit(Math.max(1, dueMs), () => this.#sweep());
  }

  /** Looks at the line again: an older job may be its head now. */
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
