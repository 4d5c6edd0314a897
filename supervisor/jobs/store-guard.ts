/**
 * The guard of a store that may fail: a disk may be full, another machine away. What is asked of the store is asked by one of
 * three functions:
 *
 * - `ask`, for clients: fails with SERVE_JOBS_UNAVAILABLE, at the latest after a time. What is asked may fail by itself, as a
 *   call that is too large for the room that is left.
 * - `orNone`: a failure finds nothing.
 * - `untilStored`, for what happened to a job that had begun: tried again until it is stored.
 *
 * The guard notes each failure, and looks once a second whether the store works again. A store on a full disk reads, and may
 * write a little. So if a store can look whether it has room (`probe`), only that decides: its answers to clients prove nothing.
 */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { inTime } from '../machine/limit-timer.js';
import { formatMs } from '../options/units.js';
import type { JobStore } from './job-store.js';

export interface GuardListener {
  /** The store fails since now; called once until it works again. */
  onAway(why: string): void;
  /** The store works again. */
  onWell(): void;
  /** Called once a second while it fails: jobs may begin. */
  onRetry(): void;
}

/** Limit for questions, because clients wait for the answers; a slower store is broken. */
export const ASK_LIMIT_MS = 10_000;

const TOO_LONG = `the store of jobs took longer than ${formatMs(ASK_LIMIT_MS)}`;

const RETRY_MS = 1000;

/** No job has this id: asking for it shows whether the store answers. */
const NO_ID = '';

type Ask<T> = (store: JobStore) => Promise<T>;

export class StoreGuard {
  /** Only what cannot fail is asked of it directly. */
  readonly store: JobStore;
  readonly #listener: GuardListener;
  /** Writes that have failed, and wait. */
  readonly #retries = new Set<() => void>();
  /** Number of writes that have failed and are not done, whether they wait or are tried. */
  #undone = 0;
  #problem: string | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;
  #isClosed = false;

  constructor(store: JobStore, listener: GuardListener) {
    this.store = store;
    this.#listener = listener;
  }

  /** The last failure of the store; null while it works. */
  get problem(): string | null {
    return this.#problem;
  }

  /** `onLate`: gets an answer that comes after the time. @throws SERVE_JOBS_UNAVAILABLE, with the cause */
  async ask<T>(question: Ask<T>, onLate = (_answer: T): void => {}): Promise<T> {
    const asked = this.#watch(question, (why) => {
      if (this.store.probe === undefined) this.noteAway(why);
      else this.#look();
    });
    try {
      return await inTime(ASK_LIMIT_MS, asked, TOO_LONG);
    } catch (cause) {
      asked.then(onLate, () => {});
      const detail = describeThrown(cause).stack;
      throw new ServeError('SERVE_JOBS_UNAVAILABLE', undefined, { detail, retryAfterS: 5, cause });
    }
  }

  /** Never rejects. `onFailed` is called before it resolves with nothing. */
  async orNone<T>(question: Ask<readonly T[]>, onFailed = (): void => {}): Promise<readonly T[]> {
    try {
      return await this.#watch(question);
    } catch {
      onFailed(); // `#watch` has reported it
      return [];
    }
  }

  /** Never rejects: resolves once it is done, or never when the store is closed before. `onFailed` is called at each failure. */
  async untilStored<T>(write: Ask<T>, onFailed = (): void => {}): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      try {
        const answer = await this.#watch(write);
        if (failures > 0) this.#undone -= 1;
        return answer;
      } catch {
        if (failures === 0) this.#undone += 1;
        onFailed(); // `#watch` has reported it
        await new Promise<void>((resolve) => this.#retries.add(resolve));
      }
    }
  }

  /** The store fails; it is asked again and again until it works. Once it is closed every call fails, which is no news. */
  noteAway(why: string): void {
    if (this.#isClosed) return;
    const isNews = this.#problem === null;
    this.#problem = why;
    if (isNews) this.#listener.onAway(why);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#retry();
      this.#listener.onRetry();
      this.#look();
    }, RETRY_MS).unref();
  }

  /** Closes the store. Nothing is tried again. */
  close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    return this.store.close();
  }

  async #watch<T>(call: Ask<T>, onFailed = (why: string): void => this.noteAway(why)): Promise<T> {
    try {
      const answer = await call(this.store);
      if (this.store.probe === undefined) this.#noteWell();
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
    this.#watch<unknown>((store) => store.probe?.() ?? store.get(NO_ID)).then(
      () => {
        this.#isLooking = false;
        if (this.#undone === 0) this.#noteWell();
        else if (this.#problem !== null) this.noteAway(this.#problem);
      },
      () => {
        this.#isLooking = false; // `#watch` has reported it
      },
    );
  }

  #noteWell(): void {
    if (this.#problem === null) return;
    this.#problem = null;
    this.#listener.onWell();
    this.#retry();
  }

  #retry(): void {
    const waiting = [...this.#retries];
    this.#retries.clear();
    for (const retry of waiting) retry();
  }
}
