/**
 * Keeps jobs: calls that outlive their client. Each is found by an id of the server until some time after its end, with its
 * result.
 *
 * 1. `accept` stores a call; only then its client is told. It waits in the store.
 * 2. A model with a free worker pulls it through its feed: it is marked as begun, then handed to the worker.
 * 3. Its answer becomes the outcome of this attempt, which the store takes if the mark is still this attempt's. A failed
 *    attempt may be followed by another one.
 *
 * The store is the only truth about a job; this class knows no more than which of them this process runs.
 */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { Job, NOWHERE, type JobCall } from '../dispatch/job.js';
import type { JobFeed } from '../dispatch/job-feed.js';
import { startLimit } from '../machine/limit-timer.js';
import { within } from '../machine/within.js';
import { formatBytes, formatMs } from '../options/units.js';
import {
  hasEnded,
  type Acceptance,
  type BegunJob,
  type EndedRecord,
  type JobPage,
  type JobRecord,
  type JobTarget,
  type KeptWebhook,
  type ListQuery,
  type NewJob,
  type Outcome,
  type StoredCall,
} from './job-record.js';
import { ASK_LIMIT_MS, GuardedStore } from './guarded-store.js';
import type { JobStore } from './job-store.js';
import { JobWatchers, watchUntil } from './job-watchers.js';
import { KeptWebhooks } from './kept-webhooks.js';
import { ModelFeed, type FedModel } from './model-feed.js';
import { newJob, type AcceptedCall } from './new-job.js';
import { ProgressNotes } from './progress-notes.js';
import { RunningJob } from './running-job.js';
import { StrandedJobs } from './stranded-jobs.js';

export { JOB_STATES, hasEnded } from './job-record.js';
export type {
  EndedRecord,
  IdempotencyKey,
  JobPage,
  JobRecord,
  JobState,
  KeptError,
  KeptResult,
  KeptWebhook,
  StoredBody,
  StoredCall,
} from './job-record.js';

/** A job that has ended, and its answer. */
export interface AnsweredJob {
  readonly record: EndedRecord;
  readonly call: StoredCall;
  /** The whole answer, even if the store keeps none; null if there was none, or if it was too large. */
  readonly body: Buffer | null;
}

/** A job that has ended, with the facts of its last run. */
export interface EndedJob extends AnsweredJob {
  readonly job: Job;
}

export interface KeptJobsOptions {
  /** Makes ids for jobs and for marks of begins, unique. */
  readonly newId: () => string;
  /** Computes the HTTP status of a job's error, for the log. */
  readonly statusOf: (error: ServeError) => number;
  readonly store: JobStore;
  /** Larger answers are not kept. */
  readonly maxResultBytes: number;
  readonly listener?: Partial<KeptJobsListener>;
}

export interface KeptJobsListener {
  /** The first job was accepted by a store that ends with this process. */
  onLosable(): void;
  /** Called once for every job, when it has ended. */
  onEnded(ended: EndedJob): void;
  /** An attempt has failed, and another one will follow. */
  onRetry(record: JobRecord, error: ServeError, call: StoredCall): void;
  /** A webhook of a process that died is to be sent. Returns false if there is no room for it now: then it comes again. */
  onWebhookTaken(webhook: KeptWebhook): boolean;
  /** A call could not be recorded; the error's detail has the reason. */
  onNotKept(call: JobCall, error: ServeError): void;
  /** Jobs wait for a model, a version or a route that this server does not have. */
  onStranded(text: string): void;
  /** The store fails since now: no job begins, and no call is accepted as one. */
  onStoreAway(why: string): void;
  onStoreWell(): void;
  onStoreWarning(text: string): void;
}

/** Limit for the store, because clients wait for it; a slower store is broken. */
export const ACCEPT_LIMIT_MS = 10_000;

/** Time after which a client may retry a call that could not be recorded. */
const RETRY_S = 5;

export class KeptJobs {
  readonly #options: KeptJobsOptions;
  readonly #store: JobStore;
  readonly #guarded: GuardedStore;
  readonly #feeds = new Set<ModelFeed>();
  readonly #watchers = new JobWatchers();
  readonly #progress: ProgressNotes;
  readonly #stranded: StrandedJobs;
  /** Null if the store keeps no webhooks. */
  readonly webhooks: KeptWebhooks | null;
  /** The jobs that this process runs, by id, in the order of their begins. */
  readonly #running = new Map<string, Job>();
  /** Begins that the store has not answered. */
  readonly #begins = new Set<Promise<unknown>>();
  /** Jobs that were cancelled while a begin, which may be theirs, was on its way. */
  readonly #cancelledEarly = new Set<string>();
  #isDraining = false;
  #isStopped = false;
  #hasToldOfLoss = false;

  constructor(options: KeptJobsOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#store.listener = {
      onDue: (model) => this.#wake(model),
      onChanged: (record) => this.#watchers.tell(record),
      onCancelled: (id) => this.#onCancelled(id),
      onEndedUnrun: (record, call) => this.#onEndedUnrun(record, call),
      onFailed: (why) => this.#guarded.noteAway(why),
      onWarning: (text) => options.listener?.onStoreWarning?.(text),
    };
    this.#guarded = new GuardedStore(this.#store, {
      onAway: (why) => options.listener?.onStoreAway?.(why),
      onWell: () => options.listener?.onStoreWell?.(),
      onRetry: () => {
        for (const feed of this.#feeds) feed.wake();
      },
    });
    this.webhooks = this.#store.isDurable
      ? new KeptWebhooks(this.#guarded, (taken) => options.listener?.onWebhookTaken?.(taken) ?? true)
      : null;
    this.#progress = new ProgressNotes((...note) => this.#store.progress(...note));
    this.#stranded = new StrandedJobs(this.#store, this.#feeds, (text) =>
      options.listener?.onStranded?.(text),
    );
  }

  /** Number of clients that watch a job or wait for its end. */
  get watchers(): number {
    return this.#watchers.count;
  }

  /** Names the store for people. */
  get storeName(): string {
    return this.#store.name;
  }

  /** Whether jobs outlive this process. */
  get isDurable(): boolean {
    return this.#store.isDurable;
  }

  /** Why the store of jobs cannot be used now; null while it answers. */
  get problem(): string | null {
    return this.#guarded.problem;
  }

  /** Null if the job is unknown or was dropped. @throws SERVE_JOBS_UNAVAILABLE */
  get(id: string): Promise<JobRecord | null> {
    return this.#guarded.get(id);
  }

  /** The body of the job's answer; null if there is none or it was dropped. @throws SERVE_JOBS_UNAVAILABLE */
  readResult(id: string): Promise<Buffer | null> {
    return this.#guarded.readResult(id);
  }

  /** Everybody's jobs, the newest first. @throws SERVE_JOBS_UNAVAILABLE */
  list(query: ListQuery): Promise<JobPage> {
    return this.#guarded.list(query);
  }

  /**
   * Calls back at each change of the job from now on, with null when the server ends, until the function returned is
   * called.
   */
  watch(id: string, onChange: (record: JobRecord | null) => void): () => void {
    return this.#watchers.add(id, onChange);
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
    const watch = watchUntil(this.#watchers, id, hasEnded); // before the look, or an end in between would be missed
    const record = await this.get(id).catch((error: unknown) => {
      watch.stop();
      throw error;
    });
    if (record === null || hasEnded(record) || limitMs === 0) {
      watch.stop();
      return record;
    }
    giveUp(watch.stop);
    if (this.#isDraining && !this.#running.has(id)) watch.stop();
    return (await watch.until(limitMs)) ?? this.get(id); // many wait for one job: its end tells them all
  }

  /**
   * Stores a call as a job. Resolves once it is stored, or with the job that has its idempotency key already; only then its
   * client may be answered. @throws SERVE_NOT_KEPT, SERVE_KEY_CONFLICT, SERVE_BODY_TOO_LARGE; then it is not run, and the caller keeps the body
   */
  async accept(accepted: AcceptedCall): Promise<JobRecord> {
    const job = newJob(this.#options.newId(), accepted);
    const acceptance = await this.#stored(job, accepted.call);
    if (acceptance.is === 'conflict') throw new ServeError('SERVE_KEY_CONFLICT');
    if (acceptance.is === 'too large') throw tooLarge(acceptance.maxBytes);
    if (acceptance.is === 'full') throw this.#notKept(accepted.call, new Error(NO_ROOM));
    if (!this.#store.isDurable && !this.#hasToldOfLoss) {
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
    return this.#guarded.cancel(id);
  }

  /** Opens the way of a model's jobs to its workers. */
  openFeed(model: FedModel): JobFeed {
    const feed: ModelFeed = new ModelFeed(model, this.#store, {
      mayBegin: () => !this.#isDraining && !this.#guarded.isResting,
      begin: (target) => this.#begin(target),
      onClosed: () => void this.#feeds.delete(feed),
    });
    this.#feeds.add(feed);
    return feed;
  }

  /** Ids of the jobs that end with this process, or may be lost with it. */
  unfinished(): string[] {
    return [...this.#running.keys(), ...this.#store.queuedHere()];
  }

  /**
   * The server drains. From a store that outlives it nothing more is pulled, and those who wait for a job that does not run
   * here are told what is known.
   */
  drain(): void {
    if (!this.#store.isDurable) return;
    this.#isDraining = true;
    this.#watchers.release((id) => !this.#running.has(id));
  }

  /** The server ends: no worker runs any more. Those who wait for a job are told what is known. */
  async stop(): Promise<void> {
    this.#isDraining = true;
    this.#isStopped = true;
    this.#progress.close();
    this.#stranded.close();
    this.webhooks?.close();
    await this.#guarded.stop();
    this.#watchers.release(() => true);
  }

  /** Resolves once the store is closed; no webhook is sent any more. Jobs that a late begin has marked are given back first. */
  async close(): Promise<void> {
    await within(ASK_LIMIT_MS, Promise.allSettled(this.#begins));
    await this.#guarded.close();
  }

  #wake(model: string): void {
    this.#stranded.look();
    for (const feed of this.#feeds) if (feed.model === model) feed.wake();
  }

  /**
   * A job that is stored too late is forgotten, unless it has a key: then another call of this key may have been accepted as
   * this job. @throws SERVE_NOT_KEPT if the store fails or takes too long
   */
  #stored(job: NewJob, call: JobCall): Promise<Acceptance> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const fail = (cause: unknown): void => reject(this.#notKept(call, cause));
      const limit = startLimit(ACCEPT_LIMIT_MS, () => {
        isLate = true;
        fail(new Error(`the store of jobs took longer than ${formatMs(ACCEPT_LIMIT_MS)}`));
      });
      this.#guarded
        .watch(() => this.#store.accept(job))
        .then(
          (acceptance) => {
            limit.stop();
            if (isLate && acceptance.is === 'accepted' && job.key === null)
              this.#store.withdraw(job.record.id).catch(() => {}); // it runs: its client was told that it may
            resolve(acceptance);
          },
          (cause: unknown) => {
            limit.stop();
            fail(cause);
          },
        );
    });
  }

  #notKept(call: JobCall, cause: unknown): ServeError {
    const options = { detail: describeThrown(cause).stack, retryAfterS: RETRY_S, cause };
    const error = new ServeError('SERVE_NOT_KEPT', undefined, options);
    this.#options.listener?.onNotKept?.(call, error);
    return error;
  }

  async #begin(target: JobTarget): Promise<readonly Job[]> {
    const begin = this.#beginNow(target);
    this.#begins.add(begin);
    const wanted = await begin;
    this.#begins.delete(begin);
    if (this.#begins.size === 0) this.#cancelledEarly.clear();
    return wanted;
  }

  async #beginNow(target: JobTarget): Promise<readonly Job[]> {
    const token = this.#options.newId();
    const begun = await this.#guarded.begin(target, token);
    const wanted: Job[] = [];
    for (const one of begun) {
      const { id } = one.record;
      // No worker gets it: the server has stopped, and it waits again; or it was cancelled, and given back it ends.
      if (this.#isStopped || this.#cancelledEarly.has(id)) void this.#guarded.giveBack(id, token, false);
      else wanted.push(this.#jobOf(one, token));
    }
    return wanted;
  }

  #onCancelled(id: string): void {
    const job = this.#running.get(id);
    if (job !== undefined) job.holder?.signal(job, 'the job was cancelled');
    else if (this.#begins.size > 0) this.#cancelledEarly.add(id);
  }

  #jobOf({ record, call, pieces }: BegunJob, token: string): Job {
    const { id, attempts: attempt } = record;
    const sink = new RunningJob(this.#options.maxResultBytes, {
      onOutcome: (outcome, job) => void this.#settle({ id, token, call, job }, outcome),
      onProgress: (progress) => this.#progress.note(id, token, progress),
    });
    const job = new Job({ ...this.#callOf(call), job: { id, attempt } }, pieces, timesOf(record), sink);
    job.onGivenBack = (isLoss) => {
      this.#running.delete(id);
      void this.#guarded.giveBack(id, token, isLoss);
    };
    this.#running.set(id, job);
    return job;
  }

  async #settle({ id, token, call, job }: Attempt, outcome: Outcome): Promise<void> {
    this.#progress.end(id);
    const record = await this.#guarded.settle(id, token, outcome);
    if (this.#running.get(id) === job) this.#running.delete(id);
    if (record === null) return;
    if (hasEnded(record)) {
      const body = 'error' in outcome ? null : outcome.body;
      this.#options.listener?.onEnded?.({ record, call, job, body });
    } else if ('error' in outcome) {
      const { code, message } = outcome.error;
      this.#options.listener?.onRetry?.(record, new ServeError(code, message, outcome.error), call);
    }
  }

  #onEndedUnrun(record: EndedRecord, call: StoredCall): void {
    const job = new Job(this.#callOf(call), [], timesOf(record), NOWHERE);
    this.#options.listener?.onEnded?.({ record, call, job, body: null });
  }

  #callOf(call: StoredCall): JobCall {
    return { ...call, id: 0, statusOf: this.#options.statusOf };
  }
}

function tooLarge(maxBytes: number): ServeError {
  const message = `The store of jobs takes bodies of at most ${formatBytes(maxBytes)}.`;
  return new ServeError('SERVE_BODY_TOO_LARGE', message);
}

const NO_ROOM =
  '--job-bytes has no room for it: no ended job could be dropped. Raise it, or let the workers catch up';

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
