/** A list that is read again and again, such as that of the GPUs. A reading may take seconds or fail; it is never waited for. */
export class LatestList<Entry> {
  readonly #read: () => Promise<readonly Entry[]>;
  readonly #pauseMs: number;
  #latest: readonly Entry[] = [];
  #isReading = false;
  #nextAtMs = 0;

  /** `pauseMs`: least time from the beginning of one reading to that of the next. */
  constructor(read: () => Promise<readonly Entry[]>, pauseMs = 0) {
    this.#read = read;
    this.#pauseMs = pauseMs;
  }

  /** As of the last reading that succeeded. */
  get latest(): readonly Entry[] {
    return this.#latest;
  }

  /** Begins a reading if the last one is over and old enough. */
  look(nowMs: number): void {
    if (this.#isReading || nowMs < this.#nextAtMs) return;
    this.#isReading = true;
    this.#nextAtMs = nowMs + this.#pauseMs;
    const take = (entries: readonly Entry[]): void => {
      this.#latest = entries;
      this.#isReading = false;
    };
    this.#read().then(take, () => take(this.#latest)); // it is tried again
  }

  /** Nobody looks any more: the list would be old. */
  forget(): void {
    this.#latest = [];
    this.#nextAtMs = 0;
  }
}
