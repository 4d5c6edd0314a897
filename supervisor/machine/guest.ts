/**
 * A program whose models are functions (`embed/`) is not a server: it may end whenever it has nothing more to do. So none of
 * their timers and processes keeps it alive, and one timer does while something is pending.
 */

/** Each thread has its own. */
let isGuest = false;

/** Timers and processes that begin from now on do not keep the program alive. Whoever needs that has a `Hold`. */
export function becomeGuest(): void {
  isGuest = true;
}

/** Returns the handle, which does not keep a program alive of which this is only a guest. */
export function loose<H extends { unref(): unknown } | null>(handle: H): H {
  if (isGuest) handle?.unref();
  return handle;
}

/** The longest time of a timer in Node, about 24.8 days. */
export const LONGEST_MS = 2 ** 31 - 1;

/** Keeps the program alive while something is pending. */
export class Hold {
  readonly #timer = setInterval(() => {}, LONGEST_MS).unref();
  #pending = 0;

  begin(): void {
    this.#pending += 1;
    if (this.#pending === 1) this.#timer.ref();
  }

  end(): void {
    this.#pending -= 1;
    if (this.#pending === 0) this.#timer.unref();
  }

  /** Keeps it alive until the promise has settled. */
  async during<T>(pending: Promise<T>): Promise<T> {
    this.begin();
    try {
      return await pending;
    } finally {
      this.end();
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
