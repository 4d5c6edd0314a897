/** The single timer of a book of jobs, for the job that is due, expires or is dropped first. */

/** Longest time without a look at the clock, which may have been set. */
const MAX_SLEEP_MS = 60_000;

/** Time after which a failed look is repeated. */
const RETRY_MS = 1000;

export class BookTimer {
  readonly #book: { readonly nextMs: number };
  readonly #tick: () => void;
  #timer: NodeJS.Timeout | null = null;
  #atMs = Infinity;

  constructor(book: { readonly nextMs: number }, tick: () => void) {
    this.#book = book;
    this.#tick = tick;
  }

  /** The next time may be an earlier one now. */
  watch(leastMs = 1): void {
    const { nextMs } = this.#book;
    if (nextMs >= this.#atMs) return; // it looks again when it fires
    this.stop();
    this.#atMs = nextMs;
    const sleepMs = Math.min(MAX_SLEEP_MS, Math.max(leastMs, nextMs - Date.now()));
    this.#timer = setTimeout(() => this.#look(), sleepMs).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#atMs = Infinity;
  }

  #look(): void {
    this.stop();
    try {
      this.#tick();
    } catch {
      return this.watch(RETRY_MS); // a call that meets the same failure reports it
    }
    this.watch();
  }
}
