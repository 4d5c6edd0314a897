/** Predicts when a call that comes now would begin, from measured run times: for Retry-After, and for deadlines. */
import { PREDICTION_SLACK_MS, type BatchWorker } from './batcher.js';
import type { Lines, Waiting } from './lines.js';
import type { ServiceTime } from './service-time.js';

/** Share of the time left to the deadline that a new call's prediction may use: calls before it may take longer than the mean. */
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

  /** The wait behind all calls in line and `arriving` calls that are not in line yet; null if unknown. */
  waitMs(arriving: number, batchSize: number): number | null {
    const workers = this.#workers();
    let [calls, runs] = this.#waiting(arriving, batchSize, workers[0]);
    let allPlaces = 0;
    for (const { load, heldBatches, places } of workers) {
      calls += load;
      runs += heldBatches;
      allPlaces += places;
    }
    return this.#service.predictWaitMs(calls, allPlaces, runs);
  }

  /** Whether a call behind these would be answered after its deadline. */
  isTooLate(deadlineAtMs: number, arriving: number, batchSize: number): boolean {
    const waitMs = this.waitMs(arriving, batchSize);
    // A worker is free: the call is tried, however slow others were, or a slow period would be assumed for ever.
    if (waitMs === null || waitMs === 0) return false;
    const runMs = this.#service.meanMs ?? 0;
    return waitMs + runMs + PREDICTION_SLACK_MS > ADMITTED_SHARE * (deadlineAtMs - performance.now());
  }

  /** Counts the calls in line or arriving, and the full batches among them; the others run together with the new call. */
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
