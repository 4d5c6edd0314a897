/** Clients that wait for the end of a job. A wait costs a timer and no work. */
import { deferred } from '../machine/deferred.js';

export interface EndWaiter {
  /** Resolves when the job has ended, after `limitMs`, or when `stop` is called. */
  until(limitMs: number): Promise<void>;
  readonly stop: () => void;
}

export class EndWaiters {
  readonly #byId = new Map<string, Set<() => void>>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Waits from now on: an end before `until` is called counts. */
  add(id: string): EndWaiter {
    const { promise, resolve } = deferred<void>();
    let timer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      clearTimeout(timer);
      this.#remove(id, stop);
      resolve();
    };
    const waiting = this.#byId.get(id) ?? new Set();
    this.#byId.set(id, waiting.add(stop));
    this.#count += 1;
    return {
      stop,
      until: (limitMs) => {
        if (this.#byId.get(id)?.has(stop) === true) timer = setTimeout(stop, limitMs);
        return promise;
      },
    };
  }

  /** The job has ended. */
  wake(id: string): void {
    for (const stop of [...(this.#byId.get(id) ?? [])]) stop();
  }

  #remove(id: string, stop: () => void): void {
    const waiting = this.#byId.get(id);
    if (waiting?.delete(stop) !== true) return;
    this.#count -= 1;
    if (waiting.size === 0) this.#byId.delete(id);
  }
}
