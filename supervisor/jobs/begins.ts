/**
 * The begins of jobs in this process: those that the store has not answered, and those that run.
 *
 * 1. `begin` begins the next jobs in the store. One that was cancelled meanwhile, or that comes when the server has stopped,
 *    is given back: no worker gets it.
 * 2. A worker runs the job, and its answer becomes the outcome of this attempt; or no worker has begun it, and it is given
 *    back too.
 * 3. The store takes the outcome if its token is still this attempt's. Then the job has ended here, or is tried again.
 */
import { ServeError } from '../../protocol/errors.js';
import { Call, NOWHERE, type CallMessage } from '../dispatch/call.js';
import { deferred } from '../machine/deferred.js';
import { within } from '../machine/limit-timer.js';
import {
  hasEnded,
  type AnsweredJob,
  type BegunJob,
  type EndedRecord,
  type JobRecord,
  type JobTarget,
  type Outcome,
  type StoredCall,
} from './job-record.js';
import type { JobStore } from './job-store.js';
import { RunningJob } from './running-job.js';
import { ASK_LIMIT_MS, type StoreGuard } from './store-guard.js';

/** A job that has ended, with the facts of its last run. */
export interface EndedJob extends AnsweredJob {
  readonly job: Call;
}

export interface BeginsOptions {
  /** Makes ids for jobs and tokens for begins, unique. */
  readonly newId: () => string;
  /** Computes the HTTP status of a job's error, for the log. */
  readonly statusOf: (error: ServeError) => number;
  /** Larger answers are not kept. */
  readonly maxResultBytes: number;
  readonly listener?: Partial<JobsListener>;
}

export interface JobsListener {
  /** Called once for every job that begins here for the first time. */
  onBegun(begun: BegunJob): void;
  /** Called once for every job that has ended here. */
  onEnded(ended: EndedJob): void;
  /** An attempt has failed, and another one will follow. */
  onRetry(record: JobRecord, error: ServeError, call: StoredCall): void;
  /** The first job was accepted by a store that ends with this process. */
  onLosable(): void;
  /** A call could not be recorded; the error's detail has the reason. */
  onNotKept(call: CallMessage, error: ServeError): void;
  /** Jobs wait for a model, a version or a route that this server does not have. */
  onStranded(text: string): void;
  /** The store fails since now: no job begins, and no call is accepted as one. */
  onStoreAway(why: string): void;
  onStoreWell(): void;
  onStoreWarning(text: string): void;
}

/** Longest time for workers that were just killed to end, and for the store to learn of their jobs. */
const STORED_LIMIT_MS = 2000;

/** Limit of all held answers together. */
const MAX_HELD_BYTES = 64 * 1024 ** 2;

export class Begins {
  readonly #guard: StoreGuard;
  readonly #options: BeginsOptions;
  /** The jobs that this process runs, by id, in the order of their begins. */
  readonly #running = new Map<string, Call>();
  /** Attempts of which the store does not know yet how they went. */
  readonly #attempts = new Set<Promise<void>>();
  /** Begins that the store has not answered. */
  readonly #beginning = new Set<Promise<unknown>>();
  /** Jobs that were cancelled while a begin, which may be theirs, was on its way. */
  readonly #cancelledEarly = new Set<string>();
  /** Jobs that were given back, with a webhook that has their begin already. */
  readonly #toldBegun = new Set<string>();
  /** A begin has failed, and none is to be tried before the store is retried: what it gives back is due at once. */
  isResting = false;
  /** The server drains, and jobs that wait outlive it. */
  isDraining = false;
  #heldBytes = 0;
  #isStopped = false;

  constructor(guard: StoreGuard, options: BeginsOptions) {
    this.#guard = guard;
    this.#options = options;
  }

  /** Ids of the jobs that this process runs. */
  get running(): string[] {
    return [...this.#running.keys()];
  }

  has(id: string): boolean {
    return this.#running.has(id);
  }

  /** Whether jobs may begin now. */
  get areAllowed(): boolean {
    return !this.isDraining && !this.isResting;
  }

  /** Begins the next jobs of a target, which its worker must get. Never rejects. */
  async begin(target: JobTarget): Promise<readonly Call[]> {
    const begin = this.#beginNext(target);
    this.#beginning.add(begin);
    const wanted = await begin;
    this.#beginning.delete(begin);
    if (this.#beginning.size === 0) this.#cancelledEarly.clear();
    return wanted;
  }

  /** A client has cancelled this job, which runs; here or in another process. */
  cancel(id: string): void {
    const job = this.#running.get(id);
    if (job !== undefined) job.holder?.signal(job, 'the job was cancelled');
    else if (this.#beginning.size > 0) this.#cancelledEarly.add(id);
  }

  /** A job that no worker was running has ended. */
  endUnrun(record: EndedRecord, call: StoredCall): void {
    this.#toldBegun.delete(record.id);
    const message = { id: 0, statusOf: this.#options.statusOf, ...call };
    const job = new Call(message, [], timesOf(record), NOWHERE);
    this.#options.listener?.onEnded?.({ record, call, job, body: null });
  }

  /** No worker gets a job any more. */
  stop(): void {
    this.#isStopped = true;
    this.isDraining = true;
  }

  /**
   * Resolves once the store has answered all begins, whose jobs are given back by then, and knows how all attempts went,
   * whose workers have ended; or when that takes too long. Never rejects.
   */
  async untilStored(): Promise<void> {
    await within(ASK_LIMIT_MS, Promise.allSettled(this.#beginning));
    await within(STORED_LIMIT_MS, Promise.allSettled(this.#attempts));
  }

  async #beginNext(target: JobTarget): Promise<readonly Call[]> {
    const token = this.#options.newId();
    const begun = await this.#guard.orNone(
      (store) => store.begin(target, token),
      () => (this.isResting = true),
    );
    const wanted: Call[] = [];
    for (const one of begun) {
      const { id } = one.record;
      // No worker gets it: the server has stopped, and it waits again; or it was cancelled, and given back it ends.
      if (this.#isStopped || this.#cancelledEarly.has(id)) this.#watch(this.#giveBack(id, token, false));
      else wanted.push(this.#run(one, token));
    }
    // A worker that gets none is taken to mean that none waits.
    const mayFindMore = wanted.length === 0 && begun.length > 0 && this.areAllowed;
    return mayFindMore ? this.#beginNext(target) : wanted;
  }

  #run(begun: BegunJob, token: string): Call {
    const { record, call, pieces } = begun;
    const { id, attempts: attempt } = record;
    const over = deferred<void>();
    const sink = new RunningJob(
      this.#options.maxResultBytes,
      (outcome, ended) => void this.#settle(begun, token, ended, outcome).then(over.resolve),
      (progress) => this.#guard.store.progress(id, token, progress),
    );
    const message = { id: 0, statusOf: this.#options.statusOf, job: { id, attempt }, ...call };
    const job = new Call(message, pieces, timesOf(record), sink);
    job.onGivenBack = (isLoss) => {
      this.#running.delete(id);
      if (record.hasWebhook && attempt === 1) this.#toldBegun.add(id);
      // When the server has stopped, it is what kills the workers: that says nothing of the job.
      void this.#giveBack(id, token, isLoss && !this.#isStopped).then(over.resolve);
    };
    this.#watch(over.promise);
    this.#running.set(id, job);
    if (attempt === 1 && !this.#toldBegun.delete(id)) this.#options.listener?.onBegun?.(begun);
    return job;
  }

  async #settle(begun: BegunJob, token: string, job: Call, outcome: Outcome): Promise<void> {
    const { listener } = this.#options;
    const { call } = begun;
    const { id } = begun.record;
    const record = await this.#store(id, token, outcome);
    if (this.#running.get(id) === job) this.#running.delete(id);
    if (record === null) return;
    if (hasEnded(record)) {
      const body = 'error' in outcome ? null : outcome.body;
      listener?.onEnded?.({ record, call, job, body });
    } else if ('error' in outcome) {
      const { code, message } = outcome.error;
      listener?.onRetry?.(record, new ServeError(code, message, outcome.error), call);
    }
  }

  /** `attempt`: resolves once the store knows how it went. */
  #watch(attempt: Promise<void>): void {
    this.#attempts.add(attempt);
    void attempt.then(() => this.#attempts.delete(attempt));
  }

  #giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    return this.#guard.untilStored((store) => store.giveBack(id, token, isLoss));
  }

  /**
   * Holds the outcome until it is stored. Only jobs that run are held, and nothing begins meanwhile, so these are few; the
   * bodies of their answers are bounded, and dropped above that.
   */
  async #store(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    const bytes = 'error' in outcome ? 0 : (outcome.body?.length ?? 0);
    let held = outcome;
    let isHeld = false;
    const onFailed = (): void => {
      if (isHeld || 'error' in held) return;
      isHeld = this.#heldBytes + bytes <= MAX_HELD_BYTES;
      if (isHeld) this.#heldBytes += bytes;
      else held = { ...held, body: null };
    };
    const settle = (store: JobStore): Promise<JobRecord | null> => store.settle(id, token, held);
    const record = await this.#guard.untilStored(settle, onFailed);
    if (isHeld) this.#heldBytes -= bytes;
    return record;
  }
}

/** The time of its acceptance on the monotonic clock, which began with this process. */
function timesOf({ createdAt }: JobRecord): { acceptedAtMs: number; deadlineAtMs: null } {
  return { acceptedAtMs: performance.now() - (Date.now() - createdAt), deadlineAtMs: null };
}
