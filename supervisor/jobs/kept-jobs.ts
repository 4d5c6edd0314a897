/**
 * Keeps jobs that outlive their request: background calls, and those of the gateway. Each is found by an id of the server
 * until some time after its end, with its result.
 *
 * A store records each job before it runs and before its client is answered. While the job waits and runs, a `KeptJob`
 * receives the answer; after the end only the store has it.
 */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { callFacts, type CallFacts, type Job, type JobCall } from '../dispatch/job.js';
import { startLimit } from '../machine/limit-timer.js';
import { formatMs } from '../options/units.js';
import type { JobEnd, JobStore } from './job-store.js';
import { KeptJob, endOf, keptError } from './kept-job.js';
import { MemoryStore } from './memory-store.js';

export type { KeptResult, KeptState } from './job-store.js';
export { KeptJob } from './kept-job.js';

export interface KeptJobsListener {
  /** Called once for every job, when it has ended. */
  onEnded(job: KeptJob, call: CallFacts): void;
  /** A call could not be recorded; the error's detail has the reason. */
  onNotKept(call: JobCall, error: ServeError): void;
}

/** Limit for the store, because clients wait for it; a slower store is broken. */
export const ACCEPT_LIMIT_MS = 10_000;

/** Number of jobs that `newest` returns. */
const NEWEST_JOBS = 100;

/** Time after which a client may retry a call that could not be recorded. */
const RETRY_S = 5;

export class KeptJobs {
  readonly #store: JobStore;
  readonly #newId: () => string;
  readonly #listener: Partial<KeptJobsListener>;
  /** Jobs that have not ended. */
  readonly #running = new Map<string, KeptJob>();
  /** Ids of running jobs whose begin is recorded. */
  readonly #begun = new Set<string>();
  /** Ids of the last jobs that were recorded, oldest first. */
  #newestIds: string[] = [];

  constructor(
    newId: () => string,
    listener: Partial<KeptJobsListener> = {},
    store: JobStore = new MemoryStore(),
  ) {
    this.#newId = newId;
    this.#listener = listener;
    this.#store = store;
  }

  /** Number of known jobs, ended ones included. */
  get size(): number {
    return this.#store.size;
  }

  get(id: string): KeptJob | null {
    const running = this.#running.get(id);
    if (running !== undefined) {
      if (running.lookUpState() === 'running') this.#noteBegun(id);
      return running;
    }
    const record = this.#store.get(id);
    return record === null ? null : new KeptJob(record, null, null);
  }

  /** The last 100 jobs that were recorded by this process and are known, newest first. */
  newest(): KeptJob[] {
    return this.#newestIds
      .map((id) => this.get(id))
      .filter((job) => job !== null)
      .reverse();
  }

  /**
   * Takes over a job that is not submitted yet, and receives its answer. Resolves once the job is recorded; only then may it
   * be submitted and its client be answered. @throws SERVE_NOT_KEPT; then it must not be run
   */
  async keep(job: Job): Promise<KeptJob> {
    const { requestId, model, version, route } = job.call;
    const facts = { id: this.#newId(), requestId, model, version, route };
    const record = { ...facts, createdAt: Date.now(), begunAt: null, end: null };
    try {
      await this.#inTime(this.#store.accept(record, job), record.id);
    } catch (cause) {
      throw this.#notKept(job.call, cause);
    }
    const { maxResultBytes } = this.#store;
    const logged = callFacts(job.call); // not the whole call: the job lets go of it at its end
    const kept = new KeptJob(record, job, {
      maxResultBytes,
      onEnded: (ended) => this.#onEnded(ended, logged),
    });
    this.#running.set(kept.id, kept);
    this.#newestIds = [...this.#newestIds.slice(1 - NEWEST_JOBS), kept.id];
    job.detach(kept);
    return kept;
  }

  /** Ids of jobs that have not ended. */
  unfinished(): string[] {
    return [...this.#running.keys()];
  }

  close(): void {
    this.#store.close();
  }

  /** Settles like `accepted`, or rejects after a limit; a job that is recorded after that is recorded as failed. */
  #inTime(accepted: Promise<void>, id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const limit = startLimit(ACCEPT_LIMIT_MS, () => {
        isLate = true;
        reject(new Error(`the store of jobs took longer than ${formatMs(ACCEPT_LIMIT_MS)}`));
      });
      const onRecord = (): void => {
        limit.stop();
        if (isLate) this.#store.ended(id, neverRun());
        resolve();
      };
      accepted.then(onRecord, (cause: Error) => {
        limit.stop();
        reject(cause);
      });
    });
  }

  #notKept(call: JobCall, cause: unknown): ServeError {
    const options = { detail: describeThrown(cause).stack, retryAfterS: RETRY_S, cause };
    const error = new ServeError('SERVE_NOT_KEPT', undefined, options);
    this.#listener.onNotKept?.(call, error);
    return error;
  }

  #noteBegun(id: string): void {
    if (this.#begun.has(id)) return;
    this.#begun.add(id);
    this.#store.begun(id, Date.now());
  }

  #onEnded(job: KeptJob, call: CallFacts): void {
    this.#listener.onEnded?.(job, call);
    if (job.runMs > 0) this.#noteBegun(job.id);
    this.#begun.delete(job.id);
    this.#running.delete(job.id);
    this.#store.ended(job.id, endOf(job));
  }
}

/** The end of a job that was recorded after its client got an error: it must never run. */
function neverRun(): JobEnd {
  const error = keptError(new ServeError('SERVE_NOT_KEPT'));
  return { state: 'failed', endedAt: Date.now(), runMs: 0, queueMs: 0, result: null, error };
}
