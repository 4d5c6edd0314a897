/**
 * Stands before a store that may fail: a disk may be full, another machine away.
 *
 * - Questions of clients fail with SERVE_JOBS_UNAVAILABLE, at the latest after a time.
 * - A begin that fails begins nothing, and `onRetry` asks for another one in a while.
 * - What happened to a job that had begun (its outcome, or that it waits again) is held here, and tried again until it is
 *   stored. Only jobs that run are held, and nothing begins meanwhile, so these are few; the bodies of their answers are
 *   bounded, and dropped above that.
 */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { startLimit } from '../machine/limit-timer.js';
import { formatMs } from '../options/units.js';
import type { Webhook } from '../webhooks/webhook.js';
import type {
  BegunJob,
  JobPage,
  JobRecord,
  JobTarget,
  KeptWebhook,
  ListQuery,
  Outcome,
} from './job-record.js';
import type { JobStore } from './job-store.js';

export interface StoreHealth {
  /** The store fails since now; called once until it answers again. */
  onAway(why: string): void;
  /** The store answers again. */
  onWell(): void;
  /** Called once a second while it fails: jobs may begin. */
  onRetry(): void;
}

export const RETRY_MS = 1000;

/** Limit for questions, because clients wait for the answers. */
export const ASK_LIMIT_MS = 10_000;

/** No job has this id: asking for it shows whether the store answers. */
const NO_ID = '';

/** Limit of all held answers together. */
const MAX_HELD_BYTES = 64 * 1024 ** 2;

export class GuardedStore {
  readonly #store: JobStore;
  readonly #health: StoreHealth;
  readonly #retries = new Set<() => void>();
  #problem: string | null = null;
  #heldBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;
  #isResting = false;

  constructor(store: JobStore, health: StoreHealth) {
    this.#store = store;
    this.#health = health;
  }

  /** The last failure of the store; null while it answers. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Whether a begin has failed, and none is to be tried before `onRetry`: what it gives back is due at once. */
  get isResting(): boolean {
    return this.#isResting;
  }

  get(id: string): Promise<JobRecord | null> {
    return this.#ask(() => this.#store.get(id));
  }

  readResult(id: string): Promise<Buffer | null> {
    return this.#ask(() => this.#store.readResult(id));
  }

  list(query: ListQuery): Promise<JobPage> {
    return this.#ask(() => this.#store.list(query));
  }

  cancel(id: string): Promise<JobRecord | null> {
    return this.#ask(() => this.#store.cancel(id));
  }

  /** Never rejects. */
  async begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    try {
      return await this.watch(() => this.#store.begin(target, token));
    } catch {
      this.#isResting = !this.#isClosed;
      return []; // `watch` has reported it
    }
  }

  /** Never rejects: resolves once it is stored, or never when the store is closed before. */
  giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    return this.#untilStored(() => this.#store.giveBack(id, token, isLoss));
  }

  /** As `giveBack`; resolves with the answer of the store's `settle`. */
  async settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    const bytes = 'error' in outcome ? 0 : (outcome.body?.length ?? 0);
    let held = outcome;
    let isHeld = false;
    const onFailed = (): void => {
      if (isHeld || 'error' in held) return;
      isHeld = this.#heldBytes + bytes <= MAX_HELD_BYTES;
      if (isHeld) this.#heldBytes += bytes;
      else held = { ...held, body: null };
    };
    const record = await this.#untilStored(() => this.#store.settle(id, token, held), onFailed);
    if (isHeld) this.#heldBytes -= bytes;
    return record;
  }

  /** As `giveBack`. */
  forgetWebhook(id: string): Promise<void> {
    return this.#untilStored(() => this.#store.forgetWebhook(id));
  }

  /** As `giveBack`. */
  endWebhook(jobId: string): Promise<void> {
    return this.#untilStored(() => this.#store.endWebhook(jobId));
  }

  /** Never rejects. */
  async takeWebhooks(limit: number): Promise<readonly KeptWebhook[]> {
    try {
      return await this.watch(() => this.#store.takeWebhooks(limit));
    } catch {
      return []; // `watch` has reported it
    }
  }

  owe(webhook: Webhook): Promise<void> {
    return this.#ask(() => this.#store.owe(webhook));
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

  /** Never rejects. */
  async stop(): Promise<void> {
    await this.watch(() => this.#store.stop()).catch(() => {}); // `watch` has reported it
  }

  /** The store fails; it is asked again and again until it answers. Once it is closed every call fails, which is no news. */
  noteAway(why: string): void {
    if (this.#isClosed) return;
    const isNews = this.#problem === null;
    this.#problem = why;
    if (isNews) this.#health.onAway(why);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#isResting = false;
      this.#retry();
      this.#health.onRetry();
      this.watch(() => this.#store.get(NO_ID)).catch(() => {}); // `watch` has reported it
    }, RETRY_MS).unref();
  }

  /** Nothing is tried again. */
  close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    return this.#store.close();
  }

  /** @throws SERVE_JOBS_UNAVAILABLE */
  #ask<T>(question: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (cause: unknown): void => {
        limit.stop();
        const detail = describeThrown(cause).stack;
        reject(new ServeError('SERVE_JOBS_UNAVAILABLE', undefined, { detail, retryAfterS: 5, cause }));
      };
      const limit = startLimit(ASK_LIMIT_MS, () =>
        fail(new Error(`the store of jobs took longer than ${formatMs(ASK_LIMIT_MS)}`)),
      );
      this.watch(question).then((answer) => {
        limit.stop();
        resolve(answer);
      }, fail);
    });
  }

  async #untilStored<T>(write: () => Promise<T>, onFailed = (): void => {}): Promise<T> {
    for (;;) {
      try {
        return await this.watch(write);
      } catch {
        onFailed(); // `watch` has reported it
        await new Promise<void>((resolve) => this.#retries.add(resolve));
      }
    }
  }

  #noteWell(): void {
    if (this.#problem === null) return;
    this.#problem = null;
    this.#health.onWell();
    this.#retry();
  }

  #retry(): void {
    const waiting = [...this.#retries];
    this.#retries.clear();
    for (const retry of waiting) retry();
  }
}
