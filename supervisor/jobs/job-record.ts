/** The record of a job: only data, so it may be written to a disk and read by another process. Times are ms since 1970. */
import type { ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { CallMessage } from '../dispatch/call.js';
import type { Webhook } from '../webhooks/webhooks.js';

/** Every job ends in exactly one of these. */
export const END_STATES = ['succeeded', 'failed', 'lost', 'expired', 'cancelled'] as const;
export type EndState = (typeof END_STATES)[number];

export const JOB_STATES = ['queued', 'running', ...END_STATES] as const;
export type JobState = (typeof JOB_STATES)[number];

export interface JobRecord {
  readonly id: string;
  readonly requestId: string;
  readonly model: string;
  /** The version that its caller named; else the one that ran it last, before that the default version at its acceptance. */
  readonly version: string;
  /** Whether its caller named the version. */
  readonly isPinned: boolean;
  readonly route: string;
  readonly state: JobState;
  readonly createdAt: number;
  /** When it may begin: later than it was accepted if it was delayed or is tried again. */
  readonly dueAt: number;
  /** Time from when it is due until it first begins; then it expires. */
  readonly ttlMs: number;
  /** From 0 to 9, the most urgent. */
  readonly priority: number;
  /** Whether its end is posted to an address. */
  readonly hasWebhook: boolean;
  /** Most times that it may begin. */
  readonly maxAttempts: number;
  /** Number of times that it has begun. */
  readonly attempts: number;
  /** Number of workers that died with it before they began it. */
  readonly losses: number;
  /** When it last began; null if it never did. */
  readonly begunAt: number | null;
  /** Whether a client has cancelled it while it ran. */
  readonly isCancelled: boolean;
  /** The newest report of its app, after its end the last one; null if there is none. */
  readonly progress: JobProgress | null;
  /** Null until it has ended. */
  readonly end: JobEnd | null;
}

export interface JobProgress {
  /** From 0 to 1. */
  readonly fraction: number;
  readonly text: string;
}

export interface JobEnd {
  readonly endedAt: number;
  /** Run time of the last attempt, as the worker measured it; 0 if the call never ran. */
  readonly runMs: number;
  readonly queueMs: number;
  /** Null unless it succeeded. */
  readonly result: KeptResult | null;
  /** Null if it succeeded. */
  readonly error: KeptError | null;
  /** Whether its end has still to be posted. */
  readonly owesWebhook: boolean;
}

/** An answer, without headers that matter only to its own client. The store has its body. */
export interface KeptResult {
  readonly head: ReplyHead;
  readonly bytes: number;
  /** Whether its body was dropped, for want of room. */
  readonly isDropped: boolean;
}

/** An error without its detail, which is for the log only. */
export type KeptError = Pick<ServeError, 'code' | 'message' | 'status' | 'kind' | 'issues'>;

/** A job that has ended. */
export interface EndedRecord extends JobRecord {
  readonly state: EndState;
  readonly end: JobEnd;
}

/** Everything that another process needs to run the call, and to report its end as this one would. */
export interface StoredCall extends Omit<CallMessage, 'id' | 'statusOf' | 'job'> {
  /** Name of the dialect in which it came. */
  readonly dialect: string;
  /** Whether it came with a valid key. */
  readonly hasKey: boolean;
  /** Whether it is a call of a background route. */
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

/** The claim of a client that its calls of this key are one. */
export interface IdempotencyKey {
  /** Names the key, its route and its caller. */
  readonly scope: string;
  /** Names the content of the call. */
  readonly content: string;
}

/** A job to be stored; it is queued. */
export interface NewJob<Body = StoredBody> {
  readonly record: JobRecord;
  readonly call: StoredCall;
  readonly body: Body;
  readonly key: IdempotencyKey | null;
}

/**
 * `accepted`: the job is stored. `known`: its key belongs to this earlier job, of the same content. `conflict`: its key
 * belongs to a job of another content. `full`: there is no room. `too large`: this store takes no such body.
 */
export type Acceptance =
  | { readonly is: 'accepted' | 'known'; readonly record: JobRecord }
  | { readonly is: 'conflict' }
  | { readonly is: 'full' }
  | { readonly is: 'too large'; readonly maxBytes: number };

/** A job that has begun in its store. */
export interface BegunJob extends Pick<NewJob, 'record' | 'call'> {
  readonly pieces: readonly Buffer[];
}

/** The outcome of one attempt: its answer, or its error. */
export type Outcome = {
  readonly runMs: number;
  readonly queueMs: number;
  /** The last report of its app; absent or null: the one in the record is. */
  readonly progress?: JobProgress | null;
} & (
  | {
      readonly head: ReplyHead;
      readonly bytes: number;
      /** Null if it is larger than any store would keep. */
      readonly body: Buffer | null;
    }
  | { readonly error: KeptError }
);

/** The jobs that one version of a model can run. */
export interface JobTarget {
  readonly model: string;
  readonly version: string;
  /** Whether jobs that name no version are for this one. */
  readonly isDefault: boolean;
  /** The routes of its app, each with the most calls that may begin together; empty if it takes no jobs. */
  readonly routes: ReadonlyMap<string, number>;
}

/** The place of a job among those that wait. */
export interface WaitingPlace extends Pick<JobRecord, 'model' | 'route' | 'priority'> {
  /** Null: the default one, whichever that is when the job begins. */
  readonly version: string | null;
}

/** A job that has ended, and its answer. */
export interface AnsweredJob<Body = Buffer> {
  readonly record: EndedRecord;
  readonly call: StoredCall;
  /** The whole answer, even if the store keeps none; null if there was none, or if it was too large. */
  readonly body: Body | null;
}

/** A job whose webhook gets its begin, or its end. */
export interface PostedJob extends Pick<AnsweredJob, 'call' | 'body'> {
  readonly record: JobRecord;
}

/** A webhook that a store keeps: that of a job which has ended, or one of an app. */
export type KeptWebhook<Body = Buffer> =
  ({ readonly of: 'job' } & AnsweredJob<Body>) | { readonly of: 'app'; readonly webhook: Webhook };

export interface ListQuery {
  /** Null: all. */
  readonly state: JobState | null;
  readonly limit: number;
  /** The `next` of an earlier page; null: from the newest on. */
  readonly from: number | null;
}

/** The newest first. */
export interface JobPage {
  readonly records: readonly JobRecord[];
  /** Null on the last page. */
  readonly next: number | null;
}

export function hasEnded(record: JobRecord): record is EndedRecord {
  return record.end !== null;
}

/** Whether jobs at this place are for this version of a model, if its app has their route. */
export function isMeant(
  { model, version }: Pick<WaitingPlace, 'model' | 'version'>,
  target: Omit<JobTarget, 'routes'>,
): boolean {
  return model === target.model && (version === null ? target.isDefault : version === target.version);
}

export function placeOf({ model, version, isPinned, route, priority }: JobRecord): WaitingPlace {
  return { model, version: isPinned ? version : null, route, priority };
}

export function keptError({ code, message, status, kind, issues }: KeptError): KeptError {
  return { code, message, status, kind, issues };
}
