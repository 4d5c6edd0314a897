/**
 * Removes expired values: a few at every write, so that they stay in proportion to the live values, and more on a
 * timer, for a store without further writes. The timer keeps no process alive.
 */
const AT_EVERY_WRITE = 16;
const AT_EVERY_TICK = 1000;
const TICK_MS = 10_000;

export class Sweeper {
  /** Checks up to `limit` entries, from where it last stopped, and removes the expired ones. Never throws. */
  readonly #sweep: (limit: number) => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(sweep: (limit: number) => void) {
    this.#sweep = sweep;
  }

  afterWrite(): void {
    this.#timer ??= setInterval(() => this.#sweep(AT_EVERY_TICK), TICK_MS).unref();
    this.#sweep(AT_EVERY_WRITE);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}
