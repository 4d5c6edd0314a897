/**
 * Keeps the thread awake between the calls of a single caller: a sleeping core takes longer to wake than a short call
 * takes to run (docs/benchmarks.md, "One caller").
 *
 * The run loop reports each call, and when all are answered. The event loop keeps running, so timers and messages are
 * not delayed. This costs one core while a single caller makes over a thousand calls a second, and nothing at any other
 * time.
 */

/** Maximum time of a call, and of the wait for the next one. For longer ones the time to wake does not matter. */
const SHORT_MS = 1;

/**
 * This many short calls one after the other come from a single caller; many callers produce short runs of them by
 * chance.
 */
const IN_A_ROW = 32;

export interface ActivityListener {
  onCall(): void;
  onIdle(): void;
}

/** For workers without a core to spare: they sleep as soon as they are idle. */
export const SLEEP_AT_ONCE: ActivityListener = { onCall: () => {}, onIdle: () => {} };

export class StayAwake implements ActivityListener {
  readonly #nowMs: () => number;
  readonly #schedule: (callback: () => void) => void;
  /** Calls that came since all were last answered. */
  #unanswered = 0;
  #cameAtMs = 0;
  #idleSinceMs = -Infinity;
  #inARow = 0;
  #isSpinning = false;

  constructor(nowMs = () => performance.now(), schedule: (callback: () => void) => void = setImmediate) {
    this.#nowMs = nowMs;
    this.#schedule = schedule;
  }

  onCall(): void {
    this.#unanswered += 1;
    if (this.#unanswered === 1) this.#cameAtMs = this.#nowMs();
  }

  /** Called when every call that came has been answered. */
  onIdle(): void {
    if (this.#unanswered === 0) return;
    const nowMs = this.#nowMs();
    const alone = this.#unanswered === 1; // with several callers the front is awake and needs the core
    const close = this.#cameAtMs - this.#idleSinceMs < SHORT_MS;
    const short = nowMs - this.#cameAtMs < SHORT_MS;
    this.#inARow = alone && close && short ? this.#inARow + 1 : 0;
    this.#unanswered = 0;
    this.#idleSinceMs = nowMs;
    if (this.#inARow >= IN_A_ROW && !this.#isSpinning) this.#spin();
  }

  #spin(): void {
    this.#isSpinning = this.#unanswered === 0 && this.#nowMs() - this.#idleSinceMs < SHORT_MS;
    if (this.#isSpinning) this.#schedule(() => this.#spin());
  }
}
