/**
 * When expired values are removed: a few at every write, so that rubbish stays in proportion to what is alive, and
 * more on a timer, for a store that nobody writes to any more. The timer keeps no process alive.
 */
const AT_EVERY_WRITE = 16;
const AT_EVERY_TICK = 1000;
const TICK_MS = 10_000;

export class Sweeper {
  /** Looks at up to `limit` entries, going on where it stopped, and removes the expired ones. */
  readonly #sweep: (limit: number) => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(sweep: (limit: number) => void) {
    this.#sweep = sweep;
  }

  afterWrite(): void {
    this.#timer ??= setInterval(() => this.#step(AT_EVERY_TICK), TICK_MS).unref();
    this.#step(AT_EVERY_WRITE);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
  #step(limit: number): void {
    try {
      this.#sweep(limit);
    } catch {
      // An error of the store is told to the calls that meet it; what was not swept is swept another time.
    }
  }
}
