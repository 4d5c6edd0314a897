/** Repeats an asynchronous reading, one at a time: at a pace, or soon when that is asked for. */

export interface Pace {
  /** Pause while something moves. */
  readonly hurriedMs: number;
  readonly idleMs: number;
}

/** A reading takes at most about this part of the time, unless it is asked for. */
const SHARE = 1 / 10;

export class Pacer {
  readonly #read: () => Promise<void>;
  readonly #isHurried: () => boolean;
  readonly #pace: Pace;
  #timer: NodeJS.Timeout | null = null;
  #isSoon = false;
  #isReading = false;
  #isAskedAgain = false;
  #isClosed = false;

  constructor(read: () => Promise<void>, isHurried: () => boolean, pace: Pace) {
    this.#read = read;
    this.#isHurried = isHurried;
    this.#pace = pace;
  }

  /** A reading that begins from now on will follow, as soon as the present one has ended. */
  soon(): void {
    if (this.#isReading) this.#isAskedAgain = true;
    else if (!this.#isSoon) this.#wait(0);
    this.#isSoon = true;
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #wait(pauseMs: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#run(), pauseMs);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    this.#timer = null;
    this.#isReading = true;
    this.#isSoon = false;
    this.#isAskedAgain = false;
    const beganAtMs = performance.now();
    await this.#read();
    this.#isReading = false;
    const tookMs = performance.now() - beganAtMs;
    const { hurriedMs, idleMs } = this.#pace;
    const pauseMs = Math.max(this.#isHurried() ? hurriedMs : idleMs, tookMs / SHARE);
    this.#isSoon = this.#isAskedAgain;
    this.#wait(this.#isAskedAgain ? 0 : pauseMs);
  }
}
