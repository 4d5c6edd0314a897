/** Records of kept jobs, so that a client with an id can ask for its job later, any number of times. */
import type { ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { Job } from '../dispatch/job.js';

export type KeptState = 'queued' | 'running' | 'succeeded' | 'failed' | 'lost';

/** A complete answer without headers that matter only to its own client. */
export interface KeptResult {
  readonly head: ReplyHead;
  /** Null if it was too large to keep. */
  readonly body: Buffer | null;
}

/** An error without its detail, which is for the log only. */
export type KeptError = Pick<ServeError, 'code' | 'message' | 'status' | 'kind' | 'issues'>;

/** Record of a job. It has only data, so it may be written to a disk. */
export interface JobRecord {
  readonly id: string;
  readonly requestId: string;
  readonly model: string;
  readonly version: string;
  readonly route: string;
  /** Calendar times in ms since 1970, because they may be read after this process has ended. */
  readonly createdAt: number;
  /** Time when it was first seen running; null until then. */
  readonly begunAt: number | null;
  /** Null until it has ended. */
  readonly end: JobEnd | null;
}

export interface JobEnd {
  readonly state: 'succeeded' | 'failed' | 'lost';
  readonly endedAt: number;
  /** Run time as the worker measured it; 0 if the call never ran. */
  readonly runMs: number;
  readonly queueMs: number;
  /** Null if it failed. */
  readonly result: KeptResult | null;
  /** Null if it succeeded. */
  readonly error: KeptError | null;
}

export interface JobStore {
  /** Results above this size are not kept. */
  readonly maxResultBytes: number;
  /** Number of records. */
  readonly size: number;
  /**
   * Records a job, with its call and body, which another process would need to run it. Resolves once it is stored as safely
   * as this store can; only then the job is run and its client answered. Rejects if it could not be recorded.
   */
  accept(record: JobRecord, job: Pick<Job, 'call' | 'pieces'>): Promise<void>;
  /** The job runs; called once, as soon as that is noticed. */
  begun(id: string, begunAt: number): void;
  /** The job has ended; called once. From now on the record may be dropped, the oldest first. */
  ended(id: string, end: JobEnd): void;
  /** Null if the job is unknown or was dropped. */
  get(id: string): JobRecord | null;
  /** Unfinished records of an earlier process, in the order of acceptance. */
  recover(): Promise<readonly JobRecord[]>;
  /** Stops all writing. */
  close(): void;
}
