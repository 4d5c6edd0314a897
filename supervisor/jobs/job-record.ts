/** The record of a job: only data, so it may be written to a disk and read by another process. Times are ms since 1970. */
import type { ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { JobCall } from '../dispatch/job.js';

export type EndState = 'succeeded' | 'failed' | 'lost';
export type JobState = 'queued' | 'running' | EndState;

/** An answer, without headers that matter only to its own client. The store has its body. */
export interface KeptResult {
  readonly head: ReplyHead;
  readonly bytes: number;
  /** Whether its body was dropped: it was too large. */
  readonly isDropped: boolean;
}

/** An error without its detail, which is for the log only. */
export type KeptError = Pick<ServeError, 'code' | 'message' | 'status' | 'kind' | 'issues'>;

export interface JobRecord {
  readonly id: string;
  readonly requestId: string;
  readonly model: string;
  readonly version: string;
  readonly route: string;
  readonly state: JobState;
  readonly createdAt: number;
  /** Number of times that it has begun. */
  readonly attempts: number;
  /** Number of workers that died with it before they began it. */
  readonly losses: number;
  /** When it last began; null if it never did. */
  readonly begunAt: number | null;
  /** Null until it has ended. */
  readonly end: JobEnd | null;
}

export interface JobEnd {
  readonly endedAt: number;
  /** Run time as the worker measured it; 0 if the call never ran. */
  readonly runMs: number;
  readonly queueMs: number;
  /** Null unless it succeeded. */
  readonly result: KeptResult | null;
  /** Null if it succeeded. */
  readonly error: KeptError | null;
}

/** A job that has ended. */
export interface EndedRecord extends JobRecord {
  readonly state: EndState;
  readonly end: JobEnd;
}

/** Everything that another process needs to run the call, and to report its end as this one would. */
export interface StoredCall extends Omit<JobCall, 'id' | 'statusOf'> {
  /** Name of the dialect in which it came. */
  readonly dialect: string;
  /** Whether it came with a valid key. */
  readonly hasKey: boolean;
  /** Whether its client was told no more than that it has started. */
  readonly isBackground: boolean;
  /** URL to which its answer is posted; empty if there is none. */
  readonly webhook: string;
}

/** The body of a call, and its memory. */
export interface StoredBody {
  readonly pieces: readonly Buffer[];
  readonly bytes: number;
  /** Returns the memory; only for a body that nothing can still read. */
  release(): void;
}

export interface NewJob {
  readonly record: JobRecord;
  readonly call: StoredCall;
  readonly body: StoredBody;
  /** When it fails if it has not begun. */
  readonly expiresAt: number;
}

/** A job that has begun in its store. */
export interface BegunJob extends Pick<NewJob, 'record' | 'call'> {
  readonly pieces: readonly Buffer[];
}

/** The outcome of one attempt. */
export type Outcome = Answered | Failed;

interface Measured {
  readonly runMs: number;
  readonly queueMs: number;
}

export interface Answered extends Measured {
  readonly head: ReplyHead;
  readonly bytes: number;
  /** Null if it is too large to keep. */
  readonly body: Buffer | null;
}

export interface Failed extends Measured {
  readonly error: KeptError;
}

/** The jobs that one version of a model can run. */
export interface JobTarget {
  readonly model: string;
  readonly version: string;
  /** The routes of its app, each with the most calls that may begin together. */
  readonly routes: ReadonlyMap<string, number>;
}

export function hasEnded(record: JobRecord): record is EndedRecord {
  return record.end !== null;
}

export function keptError({ code, message, status, kind, issues }: KeptError): KeptError {
  return { code, message, status, kind, issues };
}
