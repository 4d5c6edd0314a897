/** The end of a server: its options, and the order in which the parts end. */
export interface CloseOptions {
  /** Time in which calls are still accepted before the drain refuses them; default 0. */
  readonly lagMs?: number;
  /** Appended to the log line about the drain, such as how to stop at once; default empty. */
  readonly hint?: string;
}

/**
 * Ends the parts of a server. Each part says how it ends in the line after it is made; they end in the reverse order, because
 * a part may use those that were made before it.
 */
export class Closing {
  readonly #onError: (thrown: unknown) => void;
  /** The part that was made last comes first. */
  readonly #kills: (() => void)[] = [];
  readonly #closes: (() => void | Promise<void>)[] = [];
  #closed: Promise<void> | null = null;

  /** `onError` gets what a part throws; the other parts end nevertheless. */
  constructor(onError: (thrown: unknown) => void) {
    this.#onError = onError;
    process.on('exit', this.kill);
  }

  /** `kill` runs at a kill, and when the process exits before the server was closed: it can await nothing, and may run twice. */
  onKill(kill: () => void): void {
    this.#kills.unshift(kill);
  }

  onClose(close: () => void | Promise<void>): void {
    this.#closes.unshift(close);
  }

  /** Kills workers and cuts connections, synchronously. */
  readonly kill = (): void => {
    for (const kill of this.#kills) this.#attempt(kill);
  };

  /** Closes every part, once. Never rejects. Parts that close synchronously are closed in this turn, up to the first other one. */
  close(): Promise<void> {
    return (this.#closed ??= this.#closeAll());
  }

  async #closeAll(): Promise<void> {
    process.off('exit', this.kill);
    for (const close of this.#closes) {
      const closed = this.#attempt(close);
      if (closed instanceof Promise) await closed.catch(this.#onError);
    }
  }

  #attempt<T>(end: () => T): T | undefined {
    try {
      return end();
    } catch (thrown) {
      this.#onError(thrown);
      return undefined;
    }
  }
}
