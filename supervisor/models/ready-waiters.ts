/** Those who wait until a model is ready, however long that takes. */
export class ReadyWaiters {
  readonly #isReady: () => boolean;
  readonly #waiting = new Set<() => void>();

  /** `isReady` is asked again at every `wake`; it throws once waiting is in vain. */
  constructor(isReady: () => boolean) {
    this.#isReady = isReady;
  }

  /** Resolves once it is ready, or when `givenUp` does. @throws what `isReady` throws */
  async wait(givenUp: Promise<unknown>): Promise<void> {
    let left = false;
    void givenUp.then(() => (left = true));
    while (!this.#isReady() && !left) {
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
