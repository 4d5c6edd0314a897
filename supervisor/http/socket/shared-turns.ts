/**
 * Shares the turns of the event loop among whatever costs the front more than a little: pages, slices of long work. A turn
 * ends by its time, not by the number of these: what is left goes on in later turns, in order.
 */

/** Time of a turn for all of them together. What has begun is not cut off: a slice may take longer. */
const TURN_MS = 1;

/** The same for input that waits: with 1 ms, turns beside bodies in chunks of one byte take twice as long. */
const INPUT_TURN_MS = 0.4;

export class SharedTurns {
  readonly #turnMs: number;
  readonly #waiting: (() => void)[] = [];
  /** Null until something is done in this turn. */
  #endsAtMs: number | null = null;
  #isWorking = false;

  constructor(turnMs: number) {
    this.#turnMs = turnMs;
  }

  /** Whether this turn has time left; it always has for the first that asks. */
  hasTime(): boolean {
    const nowMs = performance.now();
    if (this.#endsAtMs !== null) return nowMs < this.#endsAtMs;
    this.#endsAtMs = nowMs + this.#turnMs;
    setImmediate(() => {
      this.#endsAtMs = null;
      this.#next();
    });
    return true;
  }

  /** No more is begun in this turn. */
  end(): void {
    if (this.#endsAtMs !== null) this.#endsAtMs = -Infinity;
  }

  /** Resolves once its caller may work, until it waits for something else: as soon as all before it have, and there is time. */
  own(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#next();
    });
  }

  #next(): void {
    if (this.#isWorking || this.#waiting.length === 0 || !this.hasTime()) return;
    this.#isWorking = true;
    this.#waiting.shift()?.();
    // Behind all promises that are settled by then, and by each other: an answer is written some promises later.
    queueMicrotask(() =>
      process.nextTick(() => {
        this.#isWorking = false;
        this.#next();
      }),
    );
  }
}

/** The turns of this process. */
export const turns = new SharedTurns(TURN_MS);

/** Turns of input that waits. They are apart, so that no answer waits behind the input of other clients. */
export const inputTurns = new SharedTurns(INPUT_TURN_MS);
