/**
 * Keeps jobs that outlive their request: background calls, and those of the gateway. Each is found by an id of the server
 * until some time after its end, with its result.
 *
 * 1. `accept` stores a call; only then its client is told. It waits in the store.
 * 2. A model with a free worker pulls it through its feed: it is marked as begun, then handed to the worker.
 * 3. Its answer becomes the outcome of this attempt, which the store takes if the mark is still this attempt's.
 *
 * The store is the only truth about a job; this class knows no more than which of them this process runs.
 */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { Job, NOWHERE, type JobCall } from '../dispatch/job.js';
import type { JobFeed } from '../dispatch/job-feed.js';
import { startLimit } from '../machine/limit-timer.js';
import { formatMs } from '../options/units.js';
import { EndWaiters } from './end-waiters.js';
import {
  hasEnded,
  type BegunJob,
  type EndedRecord,
  type JobRecord,
  type JobTarget,
  type Outcome,
  type StoredBody,
  type StoredCall,
} from './job-record.js';
import type { JobStore } from './job-store.js';
import { ModelFeed, type FedModel } from './model-feed.js';
import { RunningJob } from './running-job.js';

export { hasEnded } from './job-record.js';
export type {
  EndedRecord,
  JobRecord,
  JobState,
  KeptError,
  KeptResult,
  StoredBody,
  StoredCall,
} from './job-record.js';

/** A job that has ended, with the facts of its last run. */
export interface EndedJob {
  readonly record: EndedRecord;
  readonly call: StoredCall;
  readonly job: Job;
  /** The whole answer, even if the store keeps none; null if there was none, or if it was too large. */
  readonly body: Buffer | null;
}

export interface KeptJobsOptions {
  /** Makes ids for jobs and for marks of begins, unique. */
  readonly newId: () => string;
  /** Computes the HTTP status of a job's error, for the log. */
  readonly statusOf: (error: ServeError) => number;
  readonly store: JobStore;
  readonly listener?: Partial<KeptJobsListener>;
}

export interface KeptJobsListener {
  /** Called once for every job, when it has ended. */
  onEnded(ended: EndedJob): void;
  /** A call could not be recorded; the error's detail has the reason. */
  onNotKept(call: JobCall, error: ServeError): void;
}

/** A call to be kept, and facts that are not in the call. */
export interface AcceptedCall extends Pick<StoredCall, 'dialect' | 'hasKey' | 'isBackground' | 'webhook'> {
  readonly call: JobCall;
  /** Belongs to the store once it is accepted. */
  readonly body: StoredBody;
  /** Longest time until it begins. */
  readonly waitLimitMs: number;
}

/** Limit for the store, because clients wait for it; a slower store is broken. */
export const ACCEPT_LIMIT_MS = 10_000;

/** Time after which a client may retry a call that could not be recorded. */
const RETRY_S = 5;

export class KeptJobs {
  readonly #options: KeptJobsOptions;
  readonly #store: JobStore;
  readonly #feeds = new Set<ModelFeed>();
  readonly #waiters = new EndWaiters();

  constructor(options: KeptJobsOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#store.listener = {
      onDue: (model) => this.#wake(model),
      onEnded: (record) => this.#waiters.wake(record.id),
      onEndedUnrun: (record, call) => this.#onEndedUnrun(record, call),
    };
  }

  /** Number of known jobs, ended ones included. */
  get size(): number {
    return this.#store.size;
  }

  /** Number of clients that wait for the end of a job. */
  get waiters(): number {
    return this.#waiters.count;
  }

  /** Null if the job is unknown or was dropped. */
  get(id: string): Promise<JobRecord | null> {
    return this.#store.get(id);
  }

  /** The body of the job's answer; null if there is none or it was dropped. */
  readResult(id: string): Promise<Buffer | null> {
    return this.#store.readResult(id);
  }

  /**
   * Resolves with the record once the job has ended, or as it is after `limitMs`, or once `giveUp`, which is called with a
   * function that ends the wait, has called that; with null if it is unknown.
   */
  async whenEnded(
    id: string,
    limitMs: number,
    giveUp: (stop: () => void) => void,
  ): Promise<JobRecord | null> {
    const waiter = this.#waiters.add(id); // before the look, or an end in between would be missed
    const record = await this.#store.get(id);
    if (record === null || hasEnded(record) || limitMs === 0) {
      waiter.stop();
      return record;
    }
    giveUp(waiter.stop);
    await waiter.until(limitMs);
    return this.#store.get(id);
  }

  /**
   * Stores a call as a job. Resolves once it is stored; only then its client may be answered. @throws SERVE_NOT_KEPT; then it
   * is not run, and the caller keeps the body
   */
  async accept({ call, body, waitLimitMs, ...facts }: AcceptedCall): Promise<JobRecord> {
    const { requestId, model, version, route } = call;
    const createdAt = Date.now();
    const names = { id: this.#options.newId(), requestId, model, version, route };
    const record = { ...names, ...NEW, createdAt };
    const { id: _id, statusOf: _statusOf, ...data } = call;
    const job = { record, call: { ...data, ...facts }, body, expiresAt: createdAt + waitLimitMs };
    try {
      await this.#inTime(this.#store.accept(job), record.id);
    } catch (cause) {
      throw this.#notKept(call, cause);
    }
    return record;
  }

  /** Opens the way of a model's jobs to its workers. */
  openFeed(model: FedModel): JobFeed {
    const feed: ModelFeed = new ModelFeed(model, this.#store, {
      begin: (target) => this.#begin(target),
      onClosed: () => void this.#feeds.delete(feed),
    });
    this.#feeds.add(feed);
    return feed;
  }

  /** Ids of jobs that end with this process. */
  unfinished(): string[] {
    return this.#store.unfinished();
  }

  close(): void {
    this.#store.close();
  }

  #wake(model: string): void {
    for (const feed of this.#feeds) if (feed.model === model) feed.wake();
  }

  /** Settles like `accepted`, or rejects after a limit; a job that is stored after that is forgotten. */
  #inTime(accepted: Promise<void>, id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const limit = startLimit(ACCEPT_LIMIT_MS, () => {
        isLate = true;
        reject(new Error(`the store of jobs took longer than ${formatMs(ACCEPT_LIMIT_MS)}`));
      });
      const onStored = (): void => {
        limit.stop();
        if (isLate) void this.#store.withdraw(id);
        resolve();
      };
      accepted.then(onStored, (cause: Error) => {
        limit.stop();
        reject(cause);
      });
    });
  }

  #notKept(call: JobCall, cause: unknown): ServeError {
    const options = { detail: describeThrown(cause).stack, retryAfterS: RETRY_S, cause };
    const error = new ServeError('SERVE_NOT_KEPT', undefined, options);
    this.#options.listener?.onNotKept?.(call, error);
    return error;
  }

  async #begin(target: JobTarget): Promise<readonly Job[]> {
    const token = this.#options.newId();
    const begun = await this.#store.begin(target, token);
    return begun.map((one) => this.#jobOf(one, token));
  }

  #jobOf({ record, call, pieces }: BegunJob, token: string): Job {
    const { id } = record;
    const sink = new RunningJob(this.#store.maxResultBytes, (outcome, job) => {
      void this.#settle({ id, token, call, job }, outcome);
    });
    const job = new Job(this.#callOf(call), pieces, timesOf(record), sink);
    job.onGivenBack = (isLoss) => {
      if (isLoss && record.losses > 0)
        sink.fail(job, new ServeError('SERVE_NOT_BEGUN')); // it may be what kills them
      else void this.#store.giveBack(id, token, isLoss);
    };
    return job;
  }

  async #settle(attempt: Attempt, outcome: Outcome): Promise<void> {
    const { id, token, call, job } = attempt;
    const record = await this.#store.settle(id, token, outcome);
    if (record === null || !hasEnded(record)) return;
    const body = 'error' in outcome ? null : outcome.body;
    this.#options.listener?.onEnded?.({ record, call, job, body });
  }

  #onEndedUnrun(record: EndedRecord, call: StoredCall): void {
    const job = new Job(this.#callOf(call), [], timesOf(record), NOWHERE);
    this.#options.listener?.onEnded?.({ record, call, job, body: null });
  }

  #callOf(call: StoredCall): JobCall {
    return { ...call, id: 0, statusOf: this.#options.statusOf };
  }
}

const NEW = { state: 'queued', attempts: 0, losses: 0, begunAt: null, end: null } as const;

/** One attempt at a job, in this process. */
interface Attempt {
  readonly id: string;
  readonly token: string;
  readonly call: StoredCall;
  readonly job: Job;
}

/** The time of its acceptance on the monotonic clock, which began with this process. */
function timesOf({ createdAt }: JobRecord): { acceptedAtMs: number; deadlineAtMs: null } {
  return { acceptedAtMs: performance.now() - (Date.now() - createdAt), deadlineAtMs: null };
}
