/** The data that the table of jobs takes, keeps and tells: it may live in another thread. */
import type { KeptWebhook, WaitingPlace } from '../job-record.js';
import type { JobStoreListener } from '../job-store.js';

/** Longest time for an answer of the table or of its disk; clients wait for 10 s at most. */
export const ANSWER_LIMIT_MS = 8000;

/** Room for something that is to be written: rows go into the log and the table, a file beside them. */
export interface Need {
  readonly of: 'job' | 'result';
  readonly rowBytes: number;
  readonly fileBytes: number;
}

/** The bytes of a body or a result: in the table, or in a file of its own, in the folder of the store, if they are many. */
export type KeptBytes =
  { readonly bytes: Uint8Array; readonly file: null } | { readonly bytes: null; readonly file: string };

/** As `KeptWebhook`, with the result of a job as it is kept. */
export type TakenWebhook =
  | Extract<KeptWebhook, { of: 'app' }>
  | (Omit<Extract<KeptWebhook, { of: 'job' }>, 'body'> & { readonly body: KeptBytes | null });

/** A call of the listener of the store. */
export type TableEvent = {
  [Name in 'onDue' | 'onChanged' | 'onCancelled' | 'onEndedUnrun']: [
    Name,
    ...Parameters<JobStoreListener[Name]>,
  ];
}['onDue' | 'onChanged' | 'onCancelled' | 'onEndedUnrun'];

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

export function noEffects(): Effects {
  return { counts: [], events: [], gone: [] };
}
