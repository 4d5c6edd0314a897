/** One timer for the earliest of several times. */
export class Alarm {
  readonly #ring: () => void;
  #atMs = Infinity;
  #timer: NodeJS.Timeout | null = null;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  /** Calls `ring` at `atMs` on the monotonic clock or a little later, unless it is set to an earlier time. */
  set(atMs: number): void {
    if (atMs >= this.#atMs) return;
    this.stop();
    this.#atMs = atMs;
    // Timers have whole milliseconds; one that fires early would only be set again.
    const waitMs = Math.max(1, Math.ceil(atMs - performance.now()));
    this.#timer = setTimeout(() => this.#onTime(), waitMs);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#atMs = Infinity;
  }

  #onTime(): void {
    this.stop();
    this.#ring();
  }
}
