/** Where kept jobs are on record, so that whoever has an id can ask for the job, later and as often as it likes. */
import type { ErrorCode } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { Job } from '../dispatch/job.js';

export type KeptState = 'queued' | 'running' | 'succeeded' | 'failed' | 'lost';

/** A whole answer without the headers that only its own caller could want. */
export interface KeptResult {
  readonly head: ReplyHead;
  /** Null if it was too large to keep. */
  readonly body: Buffer | null;
}

/** What is known of a job from its begin. Nothing here belongs to this process: it may be written to a disk. */
export interface JobRecord {
  readonly id: string;
  readonly requestId: string;
  readonly model: string;
  readonly version: string;
  readonly route: string;
  /** Calendar times, ms since 1970: they are asked for after this process, too. */
  readonly createdAt: number;
  /** When it was first seen to run; null until then. */
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
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
}

export interface JobStore {
  /** Results above this size are not kept. */
  readonly maxResultBytes: number;
  /** Number of records. */
  readonly size: number;
  /**
   * Puts a job on record, with its call and body as they would be needed to run it in another process. Resolves once
   * it is as safe as this store makes it: only then is it run, and its client told. Rejects if it is not on record.
   */
  accept(record: JobRecord, job: Pick<Job, 'call' | 'pieces'>): Promise<void>;
  /** The job runs; told once, as soon as somebody notices. */
  begun(id: string, begunAt: number): void;
  /** The job has ended, once. The record may be forgotten from now on, the oldest first. */
  ended(id: string, end: JobEnd): void;
  /** Null if it never was on record, or is forgotten. */
  get(id: string): JobRecord | null;
  /** Records of an earlier process that say nothing of their end, in the order in which they were accepted. */
  recover(): Promise<readonly JobRecord[]>;
  /** Nothing is written any more. */
  close(): void;
}
