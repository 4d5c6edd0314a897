/** Measures what calls of this model cost, and predicts from it. It is pure arithmetic and reads no clock. */

/** Weight of the newest call: the mean follows a change within some tens of calls. */
const NEWEST = 0.1;

/** How fast a slow call is forgotten: it counts half after 35 calls. */
const FORGET = 0.98;

/** Fewer calls than this predict nothing. */
const ENOUGH_CALLS = 5;

export class ServiceTime {
  #calls = 0;
  #meanMs = 0;
  #slowMs = 0;
  #meanBytes = 0;

  /** Notes one finished call and the bytes of its body and its answer. */
  add(runMs: number, bytes: number): void {
    this.#calls += 1;
    const weight = Math.max(NEWEST, 1 / this.#calls);
    this.#meanMs += weight * (runMs - this.#meanMs);
    this.#meanBytes += weight * (bytes - this.#meanBytes);
    this.#slowMs = Math.max(runMs, this.#slowMs * FORGET);
  }

  /** Expected run time of the next call; null before there is enough to go by. */
  get meanMs(): number | null {
    return this.#calls < ENOUGH_CALLS ? null : this.#meanMs;
  }

  /** Expected bytes of body and answer of the next call; 0 before the first. */
  get meanBytes(): number {
    return this.#meanBytes;
  }

  /** The slowest of the recent calls, fading. */
  get slowMs(): number {
    return this.#slowMs;
  }

  /** When a call behind `ahead` others would begin, with `workers` serving; null if unknown. */
  predictWaitMs(ahead: number, workers: number): number | null {
    if (this.meanMs === null || workers === 0) return null;
    if (ahead < workers) return 0;
    // The calls running now are half done on average.
    return ((ahead - workers / 2) / workers) * this.meanMs;
  }
}
