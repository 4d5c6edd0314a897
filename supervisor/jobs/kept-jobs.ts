/**
 * Keeps jobs: calls that outlive their client. Each is found by an id of the server until some time after its end, with its
 * result.
 *
 * 1. `accept` stores a call; only then its client is told. It waits in the store.
 * 2. A model with a free worker pulls it through its feed: the store notes its begin, then it is handed to the worker.
 * 3. Its answer becomes the outcome of this attempt, which the store takes if the token is still this attempt's. A failed
 *    attempt may be followed by another one.
 *
 * The store is the only truth about a job; this class knows no more than which of them this process runs.
 */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import type { CallMessage } from '../dispatch/call.js';
import type { JobFeed } from '../dispatch/job-feed.js';
import { deferred } from '../machine/deferred.js';
import { within } from '../machine/limit-timer.js';
import { formatBytes } from '../options/units.js';
import { Begins, type BeginsOptions } from './begins.js';
import {
  hasEnded,
  type Acceptance,
  type JobPage,
  type JobRecord,
  type ListQuery,
  type NewJob,
  type StoredBody,
  type StoredCall,
} from './job-record.js';
import type { JobStore } from './job-store.js';
import { JobWatchers } from './job-watchers.js';
import { ModelFeed, type FedModel } from './model-feed.js';
import { SharedResults } from './shared-results.js';
import { StoreGuard } from './store-guard.js';
import { StrandedJobs } from './stranded-jobs.js';

export interface KeptJobsOptions extends BeginsOptions {
  readonly store: JobStore;
  /** So many more bytes of results are held for clients that read them; fewer, if negative. */
  readonly onHeldBytes?: (bytes: number) => void;
}

/** A call to be kept, and facts that are not in the call: wishes of its client, and promises of its route. */
export interface AcceptedCall
  extends
    Pick<NewJob, 'key'>,
    Pick<StoredCall, 'dialect' | 'hasKey' | 'isBackground' | 'webhook'>,
    Pick<JobRecord, 'isPinned' | 'maxAttempts' | 'priority' | 'ttlMs'> {
  /** Chosen by the client, whose key it is too; left out: a new one. */
  readonly id?: string;
  readonly delayMs: number;
  readonly call: CallMessage;
  /** Belongs to the store once the call is accepted as a new job. */
  readonly body: StoredBody;
}

/** Time after which a client may retry a call that could not be recorded. */
const RETRY_S = 5;

export class KeptJobs {
  readonly #options: KeptJobsOptions;
  /** The store, its failures, and what the jobs owe besides their results: webhooks. */
  readonly guard: StoreGuard;
  /** Clients that watch a job or wait for its end. */
  readonly watchers = new JobWatchers();
  /** The bodies of the answers of jobs, which their readers share. */
  readonly results: SharedResults;
  readonly #begins: Begins;
  readonly #feeds = new Set<ModelFeed>();
  readonly #stranded: StrandedJobs;
  #hasToldOfLoss = false;

  constructor(options: KeptJobsOptions) {
    const { store, onHeldBytes, listener } = options;
    this.#options = options;
    const guard = new StoreGuard(store, {
      onAway: (why) => listener?.onStoreAway?.(why),
      onWell: () => listener?.onStoreWell?.(),
      onRetry: () => {
        this.#begins.isResting = false;
        for (const feed of this.#feeds) feed.wake();
      },
    });
    this.guard = guard;
    this.results = new SharedResults(
      (id) => guard.ask(() => store.readResult(id)),
      (bytes) => onHeldBytes?.(bytes),
    );
    this.#begins = new Begins(guard, options);
    this.#stranded = new StrandedJobs(store, this.#feeds, (text) => listener?.onStranded?.(text));
    store.listener = {
      onDue: (model) => this.#wake(model),
      onChanged: (record) => this.watchers.tell(record),
      onMoved: (id) => void this.#readMoved(id),
      onCancelled: (id) => this.#begins.cancel(id),
      onEndedUnrun: (...ended) => this.#begins.endUnrun(...ended),
      onFailed: (why) => guard.noteAway(why),
      onWarning: (text) => listener?.onStoreWarning?.(text),
    };
  }

  /** Null if the job is unknown or was dropped. @throws SERVE_JOBS_UNAVAILABLE */
  get(id: string): Promise<JobRecord | null> {
    return this.guard.ask((store) => store.get(id));
  }

  /** Everybody's jobs, the newest first. @throws SERVE_JOBS_UNAVAILABLE */
  list(query: ListQuery): Promise<JobPage> {
    return this.guard.ask((store) => store.list(query));
  }

  /**
   * Resolves with the record once the job has ended, or as it is after `limitMs`, when the server ends, or once `giveUp`,
   * which is called with a function that ends the wait, has called that; with null if it is unknown.
   * @throws SERVE_JOBS_UNAVAILABLE
   */
  async whenEnded(
    id: string,
    limitMs: number,
    giveUp: (stop: () => void) => void,
  ): Promise<JobRecord | null> {
    const over = deferred<JobRecord | null>();
    // Before the look, or an end in between would be missed.
    const leave = this.watchers.add(id, (record) => {
      if (record === null || hasEnded(record)) over.resolve(record);
    });
    try {
      const record = await this.get(id);
      if (record === null || hasEnded(record) || limitMs === 0) return record;
      giveUp(() => over.resolve(null));
      if (this.#begins.isDraining && !this.#begins.has(id)) over.resolve(null);
      return (await within(limitMs, over.promise)) ?? (await this.get(id)); // many wait for one job: its end tells them all
    } finally {
      leave();
    }
  }

  /**
   * Stores a call as a job. Resolves once it is stored, or with the job that has its idempotency key already; only then its
   * client may be answered. @throws SERVE_NOT_KEPT, SERVE_KEY_CONFLICT, SERVE_BODY_TOO_LARGE; then it is not run, and the caller keeps the body
   */
  async accept(accepted: AcceptedCall): Promise<JobRecord> {
    const job = newJob(accepted.id ?? this.#options.newId(), accepted);
    const acceptance = await this.guard
      .ask(
        (store) => store.accept(job),
        (late) => this.#acceptedLate(job, late),
      )
      .catch(({ cause }: Error) => {
        throw this.#notKept(accepted.call, cause);
      });
    if (acceptance.is === 'conflict') throw new ServeError('SERVE_KEY_CONFLICT');
    if (acceptance.is === 'too large') throw tooLarge(acceptance.maxBytes);
    if (acceptance.is === 'full') throw this.#notKept(accepted.call, new Error(NO_ROOM));
    if (!this.guard.store.isDurable && !this.#hasToldOfLoss) {
      this.#hasToldOfLoss = true;
      this.#options.listener?.onLosable?.();
    }
    return acceptance.record;
  }

  /**
   * Cancels a job: a queued one ends at once; the app of a running one is told. Resolves with the record before that, null
   * if it is unknown. @throws SERVE_JOBS_UNAVAILABLE
   */
  cancel(id: string): Promise<JobRecord | null> {
    return this.guard.ask((store) => store.cancel(id));
  }

  /** Opens the way of a model's jobs to its workers. */
  openFeed(model: FedModel): JobFeed {
    const feed = new ModelFeed(model, this.guard.store, this.#begins, () => void this.#feeds.delete(feed));
    this.#feeds.add(feed);
    return feed;
  }

  /** Ids of the jobs that end with this process, or may be lost with it. */
  unfinished(): string[] {
    return [...this.#begins.running, ...this.guard.store.queuedHere()];
  }

  /**
   * The server drains. From a store that outlives it nothing more is pulled, and those who wait for a job that does not run
   * here are told what is known.
   */
  drain(): void {
    if (!this.guard.store.isDurable) return;
    this.#begins.isDraining = true;
    this.watchers.release((id) => !this.#begins.has(id));
  }

  /** The server ends: no worker runs any more. Those who wait for a job are told what is known. */
  async stop(): Promise<void> {
    this.#begins.stop();
    this.#stranded.close();
    await this.guard.orNone((store) => store.stop().then(() => []));
    this.watchers.release(() => true);
  }

  /**
   * Resolves once the store is closed; no webhook is sent any more. Jobs that a late begin has taken, or that killed workers had
   * not begun, are given back first.
   */
  async close(): Promise<void> {
    await this.#begins.untilStored();
    await this.guard.close();
  }

  #wake(model: string): void {
    this.#stranded.look();
    for (const feed of this.#feeds) if (feed.model === model) feed.wake();
  }

  async #readMoved(id: string): Promise<void> {
    if (!this.watchers.has(id)) return;
    const [record] = await this.guard.orNone(async (store) => [await store.get(id)]);
    if (record !== undefined && record !== null) this.watchers.tell(record);
  }

  /** Forgets the job, unless it has a key: then another call of this key may have been accepted as this job. */
  #acceptedLate({ record, key }: NewJob, { is }: Acceptance): void {
    if (is === 'accepted' && key === null) this.guard.store.withdraw(record.id).catch(() => {}); // it runs: its client was told that it may
  }

  #notKept(call: CallMessage, cause: unknown): ServeError {
    const options = { detail: describeThrown(cause).stack, retryAfterS: RETRY_S, cause };
    const error = new ServeError('SERVE_NOT_KEPT', undefined, options);
    this.#options.listener?.onNotKept?.(call, error);
    return error;
  }
}

/** Makes the record of a job from the call that a client asks to be kept. */
function newJob(id: string, accepted: AcceptedCall): NewJob {
  const { call, body, key, dialect, hasKey, isBackground, webhook } = accepted;
  const { delayMs, ttlMs, priority, isPinned, maxAttempts } = accepted;
  const { requestId, model, version, route, client, method, path, query, headers, dialectParams } = call;
  const { format, contentType, bodyBytes, params, accept, answer, asciiJson, deadlineMs } = call;
  const createdAt = Date.now();
  const hasWebhook = webhook !== '';
  const wishes = { dueAt: createdAt + delayMs, ttlMs, priority, maxAttempts, hasWebhook };
  // Spread last: to put more than a few properties behind a spread takes 5 us.
  const record = { id, requestId, model, version, isPinned, route, createdAt, ...wishes, ...NEW };
  const request = { method, path, query, headers, format, contentType, bodyBytes, params };
  const reply = { accept, answer, asciiJson, deadlineMs, dialect, dialectParams, webhook };
  const stored = { requestId, model, version, route, client, hasKey, isBackground, ...request, ...reply };
  return { record, call: stored, body, key };
}

const NEW = {
  state: 'queued',
  attempts: 0,
  losses: 0,
  begunAt: null,
  isCancelled: false,
  progress: null,
  end: null,
} as const;

function tooLarge(maxBytes: number): ServeError {
  const message = `The store of jobs takes bodies of at most ${formatBytes(maxBytes)}.`;
  return new ServeError('SERVE_BODY_TOO_LARGE', message);
}

const NO_ROOM =
  '--job-bytes has no room for it: no ended job could be dropped. Raise it, or let the workers catch up';
