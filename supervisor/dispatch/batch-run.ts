/** Joins what the calls of one batch tell of its run: it has ended once all of them have. */
import type { ServiceTime } from './service-time.js';

export class BatchRun {
  /** How many calls it began with. */
  readonly calls: number;
  #running: number;
  #runMs: number | null = null;
  #bytes = 0;

  constructor(calls: number) {
    this.calls = calls;
    this.#running = calls;
  }

  /** One of its calls has ended; the last one tells `service`. `runMs` null: it tells nothing about the next ones. */
  end(runMs: number | null, bytes: number, service: ServiceTime): void {
    this.#running -= 1;
    this.#bytes += bytes;
    // A call's time counts from the beginning of its batch: the longest one is that of the run.
    if (runMs !== null) this.#runMs = Math.max(runMs, this.#runMs ?? 0);
    if (this.#running === 0 && this.#runMs !== null) service.add(this.#runMs, this.#bytes, this.calls);
  }
}
