/**
 * Whether a store works. Notes each failure, and looks once a second whether it works again; what the store must get in any
 * case is tried again then.
 *
 * A store on a full disk reads, and may write a little. So if a store can look whether it has room (`probe`), only that
 * decides: its other answers prove nothing.
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

type Watched = Pick<JobStore, 'get' | 'probe'>;

export class StoreHealth {
  listener: HealthListener = { onAway() {}, onWell() {}, onRetry() {} };
  readonly #store: Watched;
  /** Writes that have failed, and wait. */
  readonly #retries = new Set<() => void>();
  /** Number of writes that have failed and are not done, whether they wait or are tried. */
  #undone = 0;
  #problem: string | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;
  #isClosed = false;

  constructor(store: Watched) {
    this.#store = store;
  }

  /** The last failure of the store; null while it works. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Calls the store, and notes whether it fails. @throws what the store throws */
  watch<T>(call: () => Promise<T>): Promise<T> {
    return this.#watch(call, (why) => this.noteAway(why));
  }

  /** As `watch`, for a call that may fail by itself, as one that is too large for the room that is left. */
  watchOne<T>(call: () => Promise<T>): Promise<T> {
    return this.#watch(call, (why) => {
      if (this.#store.probe === undefined) this.noteAway(why);
      else this.#look();
    });
  }

  /** As `watch`, again and again until it does not fail. `onFailed` is called at each failure. */
  async untilDone<T>(write: () => Promise<T>, onFailed: () => void): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      try {
        const answer = await this.watch(write);
        if (failures > 0) this.#undone -= 1;
        return answer;
      } catch {
        if (failures === 0) this.#undone += 1;
        onFailed(); // `watch` has reported it
        await new Promise<void>((resolve) => this.#retries.add(resolve));
      }
    }
  }

  /** The store fails; it is asked again and again until it works. Once it is closed every call fails, which is no news. */
  noteAway(why: string): void {
    if (this.#isClosed) return;
    const isNews = this.#problem === null;
    this.#problem = why;
    if (isNews) this.listener.onAway(why);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#retry();
      this.listener.onRetry();
      this.#look();
    }, RETRY_MS).unref();
  }

  /** Nothing is tried again. */
  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #watch<T>(call: () => Promise<T>, onFailed: (why: string) => void): Promise<T> {
    try {
      const answer = await call();
      if (this.#store.probe === undefined) this.#noteWell();
      return answer;
    } catch (thrown) {
      if (!this.#isClosed) onFailed(describeThrown(thrown).message);
      throw thrown;
    }
  }

  /** Finds out whether the store works. What it must get decides too: a look may find room that is too small for that. */
  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.watch<unknown>(() => this.#store.probe?.() ?? this.#store.get(NO_ID)).then(
      () => {
        this.#isLooking = false;
        if (this.#undone === 0) this.#noteWell();
        else if (this.#problem !== null) this.noteAway(this.#problem);
      },
      () => {
        this.#isLooking = false; // `watch` has reported it
      },
    );
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
