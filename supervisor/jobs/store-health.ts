/**
 * Whether a store works. Notes each failure, and looks once a second whether it works again; what the store must get in any
 * case is tried again then.
 */
import { describeThrown } from '../../protocol/errors.js';
import type { JobStore } from './job-store.js';

export interface HealthListener {
  /** The store fails since now; called once until it works again. */
  onAway(why: string): void;
  /** The store works again. */
  onWell(): void;
  /** Called once a second while it fails: jobs may begin. */
  onRetry(): void;
}

export const RETRY_MS = 1000;

/** No job has this id: asking for it shows whether the store answers. */
const NO_ID = '';

export class StoreHealth {
  listener: HealthListener = { onAway() {}, onWell() {}, onRetry() {} };
  readonly #store: Pick<JobStore, 'get'>;
  /** Writes that have failed, and wait. */
  readonly #retries = new Set<() => void>();
  #problem: string | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(store: Pick<JobStore, 'get'>) {
    this.#store = store;
  }

  /** The last failure of the store; null while it works. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Calls the store, and notes whether it fails. @throws what the store throws */
  async watch<T>(call: () => Promise<T>): Promise<T> {
    try {
      const answer = await call();
      this.#noteWell();
      return answer;
    } catch (thrown) {
      this.noteAway(describeThrown(thrown).message);
      throw thrown;
    }
  }

  /** As `watch`, again and again until it does not fail. `onFailed` is called at each failure. */
  async untilDone<T>(write: () => Promise<T>, onFailed: () => void): Promise<T> {
    for (;;) {
      try {
        return await this.watch(write);
      } catch {
        onFailed(); // `watch` has reported it
        await new Promise<void>((resolve) => this.#retries.add(resolve));
      }
    }
  }

  /** The store fails; it is asked again and again until it answers. Once it is closed every call fails, which is no news. */
  noteAway(why: string): void {
    if (this.#isClosed) return;
    const isNews = this.#problem === null;
    this.#problem = why;
    if (isNews) this.listener.onAway(why);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#retry();
      this.listener.onRetry();
      this.watch(() => this.#store.get(NO_ID)).catch(() => {}); // `watch` has reported it
    }, RETRY_MS).unref();
  }

  /** Nothing is tried again. */
  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #noteWell(): void {
    if (this.#problem === null) return;
    this.#problem = null;
    this.listener.onWell();
    this.#retry();
  }

  #retry(): void {
    const waiting = [...this.#retries];
    this.#retries.clear();
    for (const retry of waiting) retry();
  }
}
