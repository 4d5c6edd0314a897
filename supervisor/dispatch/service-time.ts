/**
 * Measures the time of runs of a model by the number of calls in them, and predicts later ones. A run is a batch; a call that
 * runs alone is a batch of one. Pure arithmetic, without a clock.
 */

/** Weight of the newest run: the mean follows a change within tens of runs. */
const NEWEST = 0.1;

/** Factor by which a slow run fades with each run: it counts half after 35 runs. */
const FORGET = 0.98;

/** Fewer runs than this predict nothing. */
const ENOUGH_RUNS = 5;

/** Least variance of batch sizes for which their run times give the cost of one more call. */
const LEAST_SPREAD = 0.25;

export class ServiceTime {
  /** Expected bytes of the bodies and answers of the next run; 0 before the first. */
  meanBytes = 0;
  /** Time of the slowest recent run, fading. */
  slowMs = 0;
  #runs = 0;
  #meanMs = 0;
  #meanCalls = 0;
  /** Variance of the calls in a run, and their covariance with its time. */
  #spread = 0;
  #slant = 0;
  #perCallMs = 0;

  /** Adds one finished run of so many calls, with the bytes of their bodies and answers. */
  add(runMs: number, bytes: number, calls = 1): void {
    this.#runs += 1;
    const weight = Math.max(NEWEST, 1 / this.#runs);
    const more = calls - this.#meanCalls;
    this.#meanCalls += weight * more;
    this.#spread = (1 - weight) * (this.#spread + weight * more * more);
    this.#slant = (1 - weight) * (this.#slant + weight * more * (runMs - this.#meanMs));
    if (this.#spread >= LEAST_SPREAD) this.#perCallMs = this.#slant / this.#spread;
    this.#meanMs += weight * (runMs - this.#meanMs);
    this.meanBytes += weight * (bytes - this.meanBytes);
    this.slowMs = Math.max(runMs, this.slowMs * FORGET);
  }

  /** Expected time of the next run; null before there are enough runs. */
  get meanMs(): number | null {
    return this.#runs < ENOUGH_RUNS ? null : this.#meanMs;
  }

  /** Expected time of `runs` runs with `calls` calls in all; null before there are enough runs. */
  predictMs(calls: number, runs: number): number | null {
    if (this.meanMs === null) return null;
    const perCallMs = Math.max(0, Math.min(this.#perCallMs, this.#meanMs / this.#meanCalls));
    return runs * this.#meanMs + perCallMs * (calls - runs * this.#meanCalls);
  }

  /** Time until a call behind `calls` others in `runs` runs would begin, if `places` run at once; null if unknown. */
  predictWaitMs(calls: number, places: number, runs = calls): number | null {
    const ms = this.predictMs(calls, runs);
    if (ms === null || places === 0) return null;
    if (runs < places) return 0;
    // The runs of this moment are half done on average.
    return (ms * (1 - places / 2 / runs)) / places;
  }
}

/** The run of a batch of several calls, measured from its calls: it ends when the last of them ends. */
export class BatchRun {
  /** Number of calls with which it began. */
  readonly calls: number;
  /** Bodies and answers of the calls that have ended. */
  bytes = 0;
  #running: number;
  #runMs: number | null = null;

  constructor(calls: number) {
    this.calls = calls;
    this.#running = calls;
  }

  /**
   * One of its calls has ended; `runMs` is null if it does not predict later calls. Returns the time of the whole run with
   * the last call; null before, and if no call predicts.
   */
  end(runMs: number | null, bytes: number): number | null {
    this.#running -= 1;
    this.bytes += bytes;
    // A call's time counts from the beginning of its batch: the longest one is that of the run.
    if (runMs !== null) this.#runMs = Math.max(runMs, this.#runMs ?? 0);
    return this.#running === 0 ? this.#runMs : null;
  }
}
