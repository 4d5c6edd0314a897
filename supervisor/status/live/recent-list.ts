/** The last entries of a list that only grows. Each has a number, which counts up from 1. */
export class RecentList<Entry> {
  readonly #size: number;
  readonly #entries: Entry[] = [];
  #lastId = 0;

  /** `size`: number of entries that are kept. */
  constructor(size: number) {
    this.#size = size;
  }

  /** Number of the last entry; 0 while there is none. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Adds an entry, whose number is that after `lastId`. */
  add(entry: Entry): void {
    this.#lastId += 1;
    this.#entries[this.#lastId % this.#size] = entry;
  }

  /** Returns the entries after number `first` up to number `last`, as far as they are kept, oldest first. */
  between(first: number, last: number): Entry[] {
    const oldest = Math.max(first, this.#lastId - this.#size);
    const length = Math.max(0, last - oldest);
    return Array.from({ length }, (_, i) => this.#entries[(oldest + 1 + i) % this.#size] as Entry);
  }
}
