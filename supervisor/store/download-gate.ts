/**
 * Lets a few downloads run at once, and a bounded number wait for their turn, in the order in which they came. Without it
 * anybody who may register models could open any number of connections, and fill the temp folder by many at a time.
 */

export interface GateLimits {
  readonly running: number;
  readonly waiting: number;
}

/** Four fill most lines; whoever deploys a whole zoo at once waits for the rest. */
export const GATE_LIMITS: GateLimits = { running: 4, waiting: 32 };

/** Nobody may wait any more. The message is a clause. */
export class GateFull extends Error {}

export class DownloadGate {
  readonly #limits: GateLimits;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(limits = GATE_LIMITS) {
    this.#limits = limits;
  }

  /**
   * Resolves when its turn has come, with what ends it: call that once. Rejects with GateFull at once, and with the
   * signal's reason while it waits; then it has no turn.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#running >= this.#limits.running) await this.#waitForStart(signal);
    else this.#running += 1;
    return () => this.#leave();
  }

  #waitForStart(signal: AbortSignal): Promise<void> {
    const { running, waiting } = this.#limits;
    if (this.#waiting.size >= waiting)
      throw new GateFull(`${running} downloads run and ${waiting} wait already; ask again later`);
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        this.#waiting.delete(go);
        reject(signal.reason as Error);
      };
      this.#waiting.add(go);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** The next one takes the turn over, if one waits. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#running -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
