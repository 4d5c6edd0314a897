/** Lets callers wait until a model has what they need: a ready worker, its routes, no call. */
import { startLimit } from '../machine/limit-timer.js';

export class Waiters<T> {
  readonly #find: () => T | null;
  readonly #waiting = new Set<() => void>();

  /** `find` is called again at every `wake`: it returns null to keep waiting, and throws if waiting is in vain. */
  constructor(find: () => T | null) {
    this.#find = find;
  }

  /** Resolves with the result of `find`, in the order of calls; with null once `givenUp` settles. @throws what `find` throws */
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

  /** Calls `find` again for all who wait. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** Resolves with true once `isQuiet` returns true, with false at `endAtMs`. Polls every 10 ms: `isQuiet` is one sum. */
export async function untilQuiet(isQuiet: () => boolean, endAtMs: number): Promise<boolean> {
  while (!isQuiet()) {
    if (performance.now() >= endAtMs) return false;
    await new Promise<void>((resolve) => startLimit(10, resolve));
  }
  return true;
}
