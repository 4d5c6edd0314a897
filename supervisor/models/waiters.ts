/** Callers that wait until a model has what they need: a ready worker, or its routes. */
export class Waiters<T> {
  readonly #find: () => T | null;
  readonly #waiting = new Set<() => void>();

  /** `find` is asked again at every `wake`; null means not yet, and it throws once waiting is in vain. */
  constructor(find: () => T | null) {
    this.#find = find;
  }

  /** Resolves with what is found, in the order of asking; with null once `givenUp` settles. @throws what `find` throws */
  async wait(givenUp: Promise<unknown>): Promise<T | null> {
    let left = false;
    void givenUp.then(() => (left = true));
    for (;;) {
      const found = this.#find();
      if (found !== null || left) return found;
      let wake!: () => void;
      const changed = new Promise<void>((resolve) => (wake = resolve));
      this.#waiting.add(wake);
      await Promise.race([changed, givenUp]);
      this.#waiting.delete(wake);
    }
  }

  /** Something has changed. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }
}
