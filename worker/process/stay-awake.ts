/**
 * Keeps the thread awake between the calls of a single caller: a core that has gone to sleep takes longer to wake
 * than a short call takes to run (docs/benchmarks.md, "One caller").
 *
 * Before: the run loop says that a call came, and that all are answered. The event loop turns meanwhile, so timers
 * and messages are as prompt as ever. It costs one core while a single caller makes over a thousand calls a second,
 * and nothing at any other time.
 */

/** Neither a call nor the wait for the next may take longer: beside them the time to wake is nothing. */
const SHORT_MS = 1;

/** So many short calls one by one come from a single caller; from many callers a few come like that by chance. */
const IN_A_ROW = 32;

export interface Idleness {
  onCall(): void;
  onIdle(): void;
}

/** A worker that has no core to spare does not wait awake. */
export const SLEEP_AT_ONCE: Idleness = { onCall: () => {}, onIdle: () => {} };

export class StayAwake implements Idleness {
  readonly #nowMs: () => number;
  readonly #nextTurn: (turn: () => void) => void;
  /** Number of calls that came since the last time when all were answered. */
  #unanswered = 0;
  #cameAtMs = 0;
  #idleSinceMs = -Infinity;
  #inARow = 0;
  #turning = false;

  constructor(nowMs = () => performance.now(), nextTurn: (turn: () => void) => void = setImmediate) {
    this.#nowMs = nowMs;
    this.#nextTurn = nextTurn;
  }

  onCall(): void {
    this.#unanswered += 1;
    if (this.#unanswered === 1) this.#cameAtMs = this.#nowMs();
  }

  /** Every call that came has been answered. */
  onIdle(): void {
    if (this.#unanswered === 0) return;
    const nowMs = this.#nowMs();
    const alone = this.#unanswered === 1; // with several callers the front is awake, and would want the core
    const close = this.#cameAtMs - this.#idleSinceMs < SHORT_MS;
    const short = nowMs - this.#cameAtMs < SHORT_MS;
    this.#inARow = alone && close && short ? this.#inARow + 1 : 0;
    this.#unanswered = 0;
    this.#idleSinceMs = nowMs;
    if (this.#inARow >= IN_A_ROW && !this.#turning) this.#turn();
  }

  #turn(): void {
    this.#turning = this.#unanswered === 0 && this.#nowMs() - this.#idleSinceMs < SHORT_MS;
    if (this.#turning) this.#nextTurn(() => this.#turn());
  }
}
