/**
 * Lets a few downloads run at once, and a bounded number wait, in the order of their arrival. Without it anyone who may
 * register models could open any number of connections, and fill the temp folder with many files at a time.
 */

export interface GateLimits {
  readonly running: number;
  readonly waiting: number;
}

/** Four downloads saturate most connections; a deployment of many models waits for the rest. */
export const GATE_LIMITS: GateLimits = { running: 4, waiting: 32 };

/** Too many downloads wait. The message is a clause. */
export class GateFull extends Error {}

export class DownloadGate {
  readonly #limits: GateLimits;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(limits = GATE_LIMITS) {
    this.#limits = limits;
  }

  /**
   * Resolves when the download may start, with a function that ends it: call that once. Rejects at once with GateFull, and
   * while waiting with the signal's reason.
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
      throw new GateFull(`${running} downloads are running and ${waiting} waiting; try again later`);
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

  /** Starts the next waiting download, if any. */
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
