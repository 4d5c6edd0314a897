/** Lets callers wait until a model has what they need: a ready worker, its routes, no call. */
import { startLimit } from '../machine/limit-timer.js';

export class Waiters {
  readonly #waiting = new Set<() => void>();

  /**
   * Resolves with the result of `find`, which is called at once and at every `wake`: it returns null to keep waiting, and
   * throws if waiting is in vain. Callers continue in the order in which they came. Resolves with null once `givenUp` settles.
   */
  async wait<T>(find: () => T | null, givenUp: Promise<unknown> = never()): Promise<T | null> {
    let left = false;
    void givenUp.then(() => (left = true));
    for (;;) {
      const found = find();
      if (found !== null || left) return found;
      let wake!: () => void;
      const changed = new Promise<void>((resolve) => (wake = resolve));
      this.#waiting.add(wake);
      await Promise.race([changed, givenUp]);
      this.#waiting.delete(wake);
    }
  }

  /** Calls `find` again for all who wait. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** Returns a new promise each time: callbacks on a shared one would be kept as long as it lives. */
function never(): Promise<never> {
  return new Promise(() => {});
}

/** Resolves with true once `isQuiet` returns true, with false at `endAtMs`. Polls every 10 ms: `isQuiet` is one sum. */
export async function untilQuiet(isQuiet: () => boolean, endAtMs: number): Promise<boolean> {
  while (!isQuiet()) {
    if (performance.now() >= endAtMs) return false;
    await new Promise<void>((resolve) => startLimit(10, resolve));
  }
  return true;
}
