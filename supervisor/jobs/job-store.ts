/** The interface of the stores of jobs. A store alone decides which transition comes first; each is whole or does not happen. */
import type {
  KeptError,
  BegunJob,
  EndedRecord,
  JobRecord,
  JobTarget,
  NewJob,
  Outcome,
  StoredCall,
} from './job-record.js';

export interface JobStoreListener {
  /** A job of this model may be due: it was accepted, or given back. */
  onDue(model: string): void;
  /** A job has ended, by whatever way. */
  onEnded(record: EndedRecord): void;
  /** A job has ended that no worker was running; called before `onEnded`. */
  onEndedUnrun(record: EndedRecord, call: StoredCall): void;
}

export interface JobStore {
  /** Set before anything else is called. */
  listener: JobStoreListener;
  /** Bodies of answers above this size are not kept. */
  readonly maxResultBytes: number;
  /** Number of records. */
  readonly size: number;
  /** Number of due jobs that wait for this target. */
  waiting(target: JobTarget): number;
  /**
   * Stores a job, with its call and body. Resolves once it is stored as safely as this store can: only then its client is
   * told. Rejects if it could not be stored; then the caller keeps the body.
   */
  accept(job: NewJob): Promise<void>;
  /** Forgets a job that has not begun, because its client was told that it was not accepted. */
  withdraw(id: string): Promise<void>;
  /**
   * Marks the next jobs as begun: those of one route that may begin together, in order of acceptance; none if none is due.
   * Resolves once the mark is stored. `token`: names these begins, unique.
   */
  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]>;
  /** Takes the mark away: no worker has begun the job, or can begin it any more. `isLoss`: its worker died. */
  giveBack(id: string, token: string, isLoss: boolean): Promise<void>;
  /**
   * Stores the outcome of the attempt that began with this token. Resolves with the record, or with null if the job has
   * another mark by now, or has ended.
   */
  settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null>;
  /** Null if the job is unknown or was dropped. */
  get(id: string): Promise<JobRecord | null>;
  /** The body of the answer; null if it is not kept. */
  readResult(id: string): Promise<Buffer | null>;
  /** Ids of the jobs that end with this process, in order of acceptance. */
  unfinished(): string[];
  /** Fails the waiting jobs of this target with an error, if they end with this process. */
  failWaiting(target: JobTarget, error: KeptError): void;
  /** Stops all writing. */
  close(): void;
}
