/**
 * The interface of the stores of jobs. A store alone decides which transition comes first; each is whole or does not happen.
 * Every promise may reject, with an error whose message says what is wrong with the store, and settles within some seconds.
 * A `settle` or `giveBack` that rejected is called again until it resolves.
 */
import type {
  Acceptance,
  BegunJob,
  EndedRecord,
  JobPage,
  JobProgress,
  JobRecord,
  JobTarget,
  KeptWebhook,
  ListQuery,
  NewJob,
  Outcome,
  StoredCall,
  WaitingPlace,
} from './job-record.js';
import type { Webhook } from '../webhooks/webhooks.js';
import type { WaitingQueue, WaitingQueues } from './waiting-jobs.js';

export interface JobStoreListener {
  /** A job of this model may be due: it was accepted, given back, or its time has come. */
  onDue(model: string): void;
  /** The record of a job is another one now; for a job that has ended, the last time. */
  onChanged(record: JobRecord): void;
  /** The record of this job is another one now, by a step of another process: who watches it reads it. */
  onMoved(id: string): void;
  /** A client has cancelled this job, which runs; here or in another process. */
  onCancelled(id: string): void;
  /** A job has ended that no worker was running; called before `onChanged`. */
  onEndedUnrun(record: EndedRecord, call: StoredCall): void;
  /** The store has found out by itself that it cannot work now. */
  onFailed(why: string): void;
  /** The operator should know this. */
  onWarning(text: string): void;
}

/** A call of the listener. */
export type StoreEvent = {
  [Name in keyof JobStoreListener]: [Name, ...Parameters<JobStoreListener[Name]>];
}[keyof JobStoreListener];

export type Tell = (...event: StoreEvent) => void;

/** The listener of a store before it has one, and after its end. */
export const NO_LISTENER: JobStoreListener = {
  onDue() {},
  onChanged() {},
  onMoved() {},
  onCancelled() {},
  onEndedUnrun() {},
  onFailed() {},
  onWarning() {},
};

export interface KeepLimits {
  /** Time that a job is kept after its end. */
  readonly retentionMs: number;
  /** Bytes of all bodies and results together. */
  readonly maxBytes: number;
}

export interface JobStore {
  /** Names the store for people, without secrets: `memory`, `local (/srv/.banana-jobs)`. */
  readonly name: string;
  /** Whether jobs outlive this process. */
  readonly isDurable: boolean;
  /** Set once, before anything else is called; the store calls it from the next turn of the event loop on. */
  listener: JobStoreListener;
  /** Whether due jobs wait for a version of this model. Asked for every call, so it must cost nothing. */
  hasDue(model: string): boolean;
  /** Number of due jobs that wait for this target. */
  waiting(target: JobTarget): number;
  /** The places at which due jobs wait. */
  places(): readonly WaitingPlace[];
  /**
   * Stores a job with its call, its body and its key. Resolves once it is stored as safely as this store can: only then its
   * client is told. The body is the caller's unless the job is accepted. Rejects if the store fails.
   */
  accept(job: NewJob): Promise<Acceptance>;
  /** Forgets a job that has not begun, because its client was told that it was not accepted. */
  withdraw(id: string): Promise<void>;
  /**
   * Begins the next jobs: those of one route that may begin together, the most urgent first, then in order of
   * acceptance; none if none is due. Resolves once that is stored; if it rejects, the store itself takes back a begin that
   * it may have stored. `token`: names these begins, unique.
   */
  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]>;
  /**
   * Takes the begin back: no worker has begun the job, or can begin it any more. `isLoss`: its worker died; the second loss
   * ends the job.
   */
  giveBack(id: string, token: string, isLoss: boolean): Promise<void>;
  /**
   * Stores the outcome of the attempt that began with this token. Resolves with the record, which may be queued again; with
   * null if the job has another token by now, or has ended.
   */
  settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null>;
  /** Notes the progress of a running attempt, less safely than anything else. */
  progress(id: string, token: string, progress: JobProgress): void;
  /** Cancels a job that has not ended. Resolves with the record before that; with null if it is unknown. */
  cancel(id: string): Promise<JobRecord | null>;
  /** Null if the job is unknown or was dropped. */
  get(id: string): Promise<JobRecord | null>;
  /** The body of the answer; null if it is not kept. */
  readResult(id: string): Promise<Buffer | null>;
  list(query: ListQuery): Promise<JobPage>;
  /**
   * Stores a webhook of an app, to be sent by this process as long as that lives. Those of jobs need no call: they are owed
   * (`owesWebhook`) from the step on in which the job ends, and a job that owes one is not dropped.
   */
  owe(webhook: Webhook): Promise<void>;
  /** Forgets a webhook of an app. */
  forgetWebhook(id: string): Promise<void>;
  /** Notes that the webhook of this job was delivered or given up. */
  endWebhook(jobId: string): Promise<void>;
  /**
   * Takes webhooks that no living process sends, at most `limit`: they are this process's now, which sends them and calls
   * `forgetWebhook` or `endWebhook`. Those of jobs that ended here are this process's without it.
   */
  takeWebhooks(limit: number): Promise<readonly KeptWebhook[]>;
  /**
   * Looks whether the store can write more than a little. A store without it counts as one that can if it answers: one that
   * reads while it cannot write should have it.
   */
  probe?(): Promise<void>;
  /** Ids of the queued jobs that end with this process, in order of acceptance. */
  queuedHere(): readonly string[];
  /** The server ends: fails these. Webhooks may still be owed and forgotten. */
  stop(): Promise<void>;
  /** Resolves once everything is stored. Nothing is called afterwards. */
  close(): Promise<void>;
}

/** The half that all stores have in common: counts of the jobs that wait, and events for a listener. */
export abstract class StoreBase {
  /** The due jobs that wait, as far as this process knows. */
  protected abstract readonly counts: WaitingQueues<WaitingQueue>;
  #listener: JobStoreListener | null = null;
  /** Events that the listener has not been told, in their order. */
  #early: StoreEvent[] = [];

  get listener(): JobStoreListener {
    return this.#listener ?? NO_LISTENER;
  }

  set listener(listener: JobStoreListener) {
    this.#listener = listener;
    setImmediate(() => {
      const early = this.#early;
      this.#early = [];
      for (const event of early) this.tell(...event);
    });
  }

  hasDue(model: string): boolean {
    return this.counts.hasAny(model);
  }

  waiting(target: JobTarget): number {
    return this.counts.count(target);
  }

  places(): readonly WaitingPlace[] {
    return this.counts.places();
  }

  /** Changes nothing: jobs that outlive this process run in another one. */
  stop(): Promise<void> {
    return Promise.resolve();
  }

  queuedHere(): readonly string[] {
    return [];
  }

  /** Tells the listener; what happens before there is one is kept for it. */
  readonly tell: Tell = (...event) => {
    const [name, ...args] = event;
    if (this.#listener === null || this.#early.length > 0) this.#early.push(event);
    else (this.#listener[name] as (...given: readonly unknown[]) => void)(...args);
  };
}
