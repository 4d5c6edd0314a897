/** When a call that comes now would begin, by what is known of a model's calls: for a refusal's Retry-After, and for deadlines. */
import { PREDICTION_SLACK_MS, type BatchWorker } from './batcher.js';
import type { Lines, Waiting } from './lines.js';
import type { ServiceTime } from './service-time.js';

/** How much of the time left a new call's prediction may use: what runs before it may take longer than the mean. */
const ADMITTED_SHARE = 0.85;

export class Forecast {
  readonly #lines: Lines<Waiting>;
  readonly #workers: () => readonly BatchWorker[];
  readonly #service: ServiceTime;

  constructor(lines: Lines<Waiting>, workers: () => readonly BatchWorker[], service: ServiceTime) {
    this.#lines = lines;
    this.#workers = workers;
    this.#service = service;
  }

  /** Behind all that waits, and `arriving` calls that are not in line yet; null if unknown. */
  waitMs(arriving: number, batchSize: number): number | null {
    const workers = this.#workers();
    let [calls, runs] = this.#waiting(arriving, batchSize, workers[0]);
    for (const { load, heldBatches } of workers) {
      calls += load;
      runs += heldBatches;
    }
    return this.#service.predictWaitMs(calls, workers.length, runs);
  }

  /** Whether a call that came behind these would be answered after its deadline. */
  isTooLate(deadlineAtMs: number, arriving: number, batchSize: number): boolean {
    const waitMs = this.waitMs(arriving, batchSize);
    // A worker is free: the call is tried, whatever others took, or a slow spell would be believed for ever.
    if (waitMs === null || waitMs === 0) return false;
    const runMs = this.#service.meanMs ?? 0;
    return waitMs + runMs + PREDICTION_SLACK_MS > ADMITTED_SHARE * (deadlineAtMs - performance.now());
  }

  /** Calls in line or arriving, and the runs that they fill; those that fill none run together with the new call. */
  #waiting(
    arriving: number,
    batchSize: number,
    worker: BatchWorker | undefined,
  ): [calls: number, runs: number] {
    let largest = 1;
    let runs = 0;
    for (const line of this.#lines.all) {
      const head = line.peek();
      if (head === null) continue;
      const size = batchSize === 1 ? 1 : Math.min(batchSize, worker?.maxBatch(head.route) ?? 1);
      runs += Math.floor(line.length / size);
      largest = Math.max(largest, size);
    }
    return [this.#lines.length + arriving, runs + Math.floor(arriving / largest)];
  }
}
