/** Measures the run of a batch from its calls: it ends when the last of them ends. */
import type { ServiceTime } from './service-time.js';

export class BatchRun {
  /** Number of calls with which it began. */
  readonly calls: number;
  #running: number;
  #runMs: number | null = null;
  #bytes = 0;

  constructor(calls: number) {
    this.calls = calls;
    this.#running = calls;
  }

  /** One of its calls has ended; the last one adds the run to `service`. `runMs` is null if it does not predict later calls. */
  end(runMs: number | null, bytes: number, service: Pick<ServiceTime, 'add'>): void {
    this.#running -= 1;
    this.#bytes += bytes;
    // A call's time counts from the beginning of its batch: the longest one is that of the run.
    if (runMs !== null) this.#runMs = Math.max(runMs, this.#runMs ?? 0);
    if (this.#running === 0 && this.#runMs !== null) service.add(this.#runMs, this.#bytes, this.calls);
  }
}
