/** The time of Redis, which all fronts share: this process's monotonic clock, set by Redis' TIME at each look. */
export interface JobClock {
  /** ms since 1970 */
  now(): number;
  /** The time of Redis between two moments of the monotonic clock. */
  set(redisMs: number, sentAtMs: number, gotAtMs: number): void;
}

/** A front whose own clock is further off tells its operator. */
const MAX_OFF_MS = 1000;

export class RedisClock implements JobClock {
  readonly #warn: (text: string) => void;
  /** Time of Redis when the monotonic clock was 0; until it is known, this machine's. */
  #baseMs = performance.timeOrigin;
  #hasWarned = false;

  constructor(warn: (text: string) => void) {
    this.#warn = warn;
  }

  now(): number {
    return Math.round(this.#baseMs + performance.now());
  }

  set(redisMs: number, sentAtMs: number, gotAtMs: number): void {
    this.#baseMs = redisMs - (sentAtMs + gotAtMs) / 2;
    const offMs = Math.round(Date.now() - this.now());
    if (Math.abs(offMs) <= MAX_OFF_MS + (gotAtMs - sentAtMs)) this.#hasWarned = false;
    else if (!this.#hasWarned) {
      this.#hasWarned = true;
      const side = offMs > 0 ? 'ahead of' : 'behind';
      this.#warn(
        `the clock of this machine is ${Math.abs(offMs)} ms ${side} that of Redis, whose time jobs have`,
      );
    }
  }
}
