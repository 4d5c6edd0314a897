/**
 * Keeps clients without a key from filling the log: their answers get so many lines a second, the rest is counted; a probe
 * gets a line when its answer changes.
 */

/** Lines a second for answers to clients without a key. */
export const LINES_PER_S = 100;

export class LineLimit {
  readonly #onRest: (count: number) => void;
  #lines = 0;
  #rest = 0;
  #second: NodeJS.Timeout | null = null;

  /** `onRest` is called at the end of a second with the number of lines that it did not allow. */
  constructor(onRest: (count: number) => void) {
    this.#onRest = onRest;
  }

  /** Whether there may be one more line; if not, it is counted. */
  allows(): boolean {
    this.#second ??= setTimeout(() => this.#endSecond(), 1000).unref();
    if (this.#lines === LINES_PER_S) {
      this.#rest += 1;
      return false;
    }
    this.#lines += 1;
    return true;
  }

  /** Reports the rest of the present second now. */
  close(): void {
    if (this.#second !== null) clearTimeout(this.#second);
    this.#endSecond();
  }

  #endSecond(): void {
    const rest = this.#rest;
    this.#second = null;
    this.#lines = 0;
    this.#rest = 0;
    if (rest > 0) this.#onRest(rest);
  }
}

/** Most paths whose last answer is known: those that ask for a model are as many as there are models. */
const MAX_PATHS = 1000;

/** Returns a function that compares an answer of a path with the one before. */
export function probeAnswers(): (path: string, status: number) => 'first' | 'same' | 'changed' {
  const last = new Map<string, number>();
  return (path, status) => {
    const before = last.get(path);
    if (before === status) return 'same';
    if (before === undefined && last.size === MAX_PATHS) last.clear();
    last.set(path, status);
    return before === undefined ? 'first' : 'changed';
  };
}
