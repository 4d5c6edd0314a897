/**
 * The door to a store that may fail: a disk may be full, another machine away. Everything goes through it but the listener's
 * calls.
 *
 * - Questions of clients fail with SERVE_JOBS_UNAVAILABLE, at the latest after a time; so does `accept`, with the reason.
 * - A begin that fails begins nothing, and `onRetry` asks for another one in a while.
 * - What happened to a job that had begun (its outcome, or that it waits again) is held here, and tried again until it is
 *   stored. Only jobs that run are held, and nothing begins meanwhile, so these are few; the bodies of their answers are
 *   bounded, and dropped above that.
 * - What the store knows without looking is passed on as it is: it cannot fail.
 */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { startLimit } from '../machine/limit-timer.js';
import { formatMs } from '../options/units.js';
import type { Webhook, WebhookKeeper } from '../webhooks/webhook.js';
import type {
  Acceptance,
  BegunJob,
  JobPage,
  JobProgress,
  JobRecord,
  JobTarget,
  KeptWebhook,
  ListQuery,
  NewJob,
  Outcome,
  WaitingPlace,
} from './job-record.js';
import type { JobStore, JobStoreListener } from './job-store.js';
import { StoreHealth, type HealthListener } from './store-health.js';

export interface GuardedStoreListener extends Omit<JobStoreListener, 'onFailed'>, HealthListener {}

/** Limit for questions, because clients wait for the answers; a slower store is broken. */
export const ASK_LIMIT_MS = 10_000;

/** Limit of all held answers together. */
const MAX_HELD_BYTES = 64 * 1024 ** 2;

export class GuardedStore implements WebhookKeeper {
  readonly #store: JobStore;
  readonly #health: StoreHealth;
  #heldBytes = 0;
  #isResting = false;
  #isClosed = false;

  constructor(store: JobStore) {
    this.#store = store;
    this.#health = new StoreHealth(store);
  }

  /** Set once, before anything else is called. */
  set listener(listener: GuardedStoreListener) {
    this.#health.listener = {
      onAway: (why) => listener.onAway(why),
      onWell: () => listener.onWell(),
      onRetry: () => {
        this.#isResting = false;
        listener.onRetry();
      },
    };
    this.#store.listener = {
      onDue: (model) => listener.onDue(model),
      onChanged: (record) => listener.onChanged(record),
      onCancelled: (id) => listener.onCancelled(id),
      onEndedUnrun: (...ended) => listener.onEndedUnrun(...ended),
      onFailed: (why) => this.#health.noteAway(why),
      onWarning: (text) => listener.onWarning(text),
    };
  }

  get name(): string {
    return this.#store.name;
  }

  get isDurable(): boolean {
    return this.#store.isDurable;
  }

  /** The last failure of the store; null while it works. */
  get problem(): string | null {
    return this.#health.problem;
  }

  /** Whether a begin has failed, and none is to be tried before `onRetry`: what it gives back is due at once. */
  get isResting(): boolean {
    return this.#isResting;
  }

  hasDue(model: string): boolean {
    return this.#store.hasDue(model);
  }

  waiting(target: JobTarget): number {
    return this.#store.waiting(target);
  }

  places(): readonly WaitingPlace[] {
    return this.#store.places();
  }

  queuedHere(): readonly string[] {
    return this.#store.queuedHere();
  }

  /**
   * A job that is stored too late is forgotten, unless it has a key: then another call of this key may have been accepted as
   * this job. Rejects if the store fails or takes too long.
   */
  accept(job: NewJob): Promise<Acceptance> {
    const { id } = job.record;
    return this.#inTime(
      this.#health.watchOne(() => this.#store.accept(job)),
      (acceptance) => {
        if (acceptance.is === 'accepted' && job.key === null) this.#store.withdraw(id).catch(() => {}); // it runs: its client was told that it may
      },
    );
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
      return await this.#health.watch(() => this.#store.begin(target, token));
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

  progress(id: string, token: string, progress: JobProgress): void {
    this.#store.progress(id, token, progress);
  }

  owe(webhook: Webhook): Promise<void> {
    return this.#ask(() => this.#store.owe(webhook));
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
      return await this.#health.watch(() => this.#store.takeWebhooks(limit));
    } catch {
      return []; // `watch` has reported it
    }
  }

  /** Never rejects. */
  async stop(): Promise<void> {
    await this.#health.watch(() => this.#store.stop()).catch(() => {}); // `watch` has reported it
  }

  /** Nothing is tried again. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#health.close();
    return this.#store.close();
  }

  /** @throws SERVE_JOBS_UNAVAILABLE */
  async #ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await this.#inTime(this.#health.watch(question));
    } catch (cause) {
      const detail = describeThrown(cause).stack;
      throw new ServeError('SERVE_JOBS_UNAVAILABLE', undefined, { detail, retryAfterS: 5, cause });
    }
  }

  /** Rejects after a time; then `onLate` gets the answer. */
  #inTime<T>(asked: Promise<T>, onLate: (answer: T) => void = () => {}): Promise<T> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const limit = startLimit(ASK_LIMIT_MS, () => {
        isLate = true;
        reject(new Error(`the store of jobs took longer than ${formatMs(ASK_LIMIT_MS)}`));
      });
      asked.then(
        (answer) => {
          limit.stop();
          if (isLate) onLate(answer);
          resolve(answer);
        },
        (cause: Error) => {
          limit.stop();
          reject(cause);
        },
      );
    });
  }

  #untilStored<T>(write: () => Promise<T>, onFailed = (): void => {}): Promise<T> {
    return this.#health.untilDone(write, onFailed);
  }
}
