/** The language between the server and the table of jobs, which may live in another thread: only data. */
import type {
  Acceptance,
  Answered,
  EndedRecord,
  Failed,
  JobPage,
  JobProgress,
  JobRecord,
  JobTarget,
  KeptError,
  KeptWebhook,
  ListQuery,
  NewJob,
  StoredCall,
  WaitingPlace,
} from '../job-record.js';
import type { Webhook } from '../../webhooks/webhooks.js';

/** Longest time for an answer of the table or of its disk; clients wait for 10 s at most. */
export const ANSWER_LIMIT_MS = 8000;

/** Room for something that is to be written: rows go into the log and the table, a file beside them. */
export interface Need {
  readonly of: 'job' | 'result';
  readonly rowBytes: number;
  readonly fileBytes: number;
}

/** The bytes of a body or a result: in the table, or in a file of its own if they are many. Both null: not kept. */
export interface KeptBytes {
  readonly bytes: Uint8Array | null;
  /** Name of the file in the folder of the store. */
  readonly file: string | null;
}

export const NOT_KEPT: KeptBytes = { bytes: null, file: null };

export interface TableJob extends Pick<NewJob, 'record' | 'call' | 'key'> {
  readonly body: KeptBytes;
}

export interface BegunRow {
  readonly record: JobRecord;
  readonly call: StoredCall;
  readonly body: KeptBytes;
}

export type TableOutcome = (Omit<Answered, 'body'> & { readonly body: KeptBytes }) | Failed;

/** Calls of the table, as those of a `JobStore`, but each at once and whole. */
export interface TableCalls {
  accept(job: TableJob): Acceptance;
  withdraw(id: string): void;
  begin(target: JobTarget, token: string): readonly BegunRow[];
  giveBack(id: string, token: string, isLoss: boolean): void;
  /** Gives back all jobs with this mark, if any: their begin was answered with a failure. */
  takeBack(token: string): void;
  /** Ends a marked job that no worker can begin. */
  failMarked(id: string, token: string, error: KeptError): void;
  /** `isAgain`: an earlier call may have been done, though its answer never came; then its record is returned again. */
  settle(id: string, token: string, outcome: TableOutcome, isAgain: boolean): JobRecord | null;
  progress(id: string, token: string, progress: JobProgress): void;
  cancel(id: string): JobRecord | null;
  get(id: string): JobRecord | null;
  readResult(id: string): KeptBytes | null;
  list(query: ListQuery): JobPage;
  owe(webhook: Webhook): void;
  forgetWebhook(id: string): void;
  endWebhook(jobId: string): void;
  takeWebhooks(limit: number): readonly TakenWebhook[];
  /**
   * Makes room on the disk for a body or a result that is to be a file, whose job is not changed; the files that go for it are
   * among the effects. Returns false if the disk can never hold it. @throws ENOSPC if others need the room
   */
  makeRoom(need: Need): boolean;
  /** Looks whether a small job would be accepted, and writes something, which changes nothing. @throws ENOSPC */
  probe(): void;
}

/** As `KeptWebhook`, with the result of a job as it is kept. */
export type TakenWebhook =
  | Extract<KeptWebhook, { of: 'app' }>
  | (Omit<Extract<KeptWebhook, { of: 'job' }>, 'body'> & { readonly body: KeptBytes | null });

/** One call by its name. */
export type TableCall = {
  [Name in keyof TableCalls]: { readonly name: Name; readonly args: Parameters<TableCalls[Name]> };
}[keyof TableCalls];

export interface NumberedCall {
  readonly number: number;
  readonly call: TableCall;
}

/** An answer is sent when everything that its call has changed is on the disk. */
export type TableAnswer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: string };

export type TableEvent =
  | { readonly is: 'due'; readonly model: string }
  | { readonly is: 'changed'; readonly record: JobRecord }
  | { readonly is: 'cancelled'; readonly id: string }
  | { readonly is: 'ended unrun'; readonly record: EndedRecord; readonly call: StoredCall };

export interface CountChange {
  readonly place: WaitingPlace;
  readonly by: number;
}

/** All that one transaction has changed for others. */
export interface Effects {
  /** Due jobs that wait, by place. */
  readonly counts: CountChange[];
  /** In their order. */
  readonly events: TableEvent[];
  /** Files that no job needs any more. */
  readonly gone: string[];
}

export interface TableNews {
  readonly answers: readonly TableAnswer[];
  readonly effects: Effects;
}
