/** The calls of the table of jobs, which may live in another thread, and its answers. */
import type { JobTable } from './job-table.js';
import type { Effects } from './table-data.js';

/** Calls of the table, as those of a `JobStore`, but each at once and whole. */
export type TableCalls = Omit<
  JobTable,
  'endUnrun' | 'files' | 'listener' | 'nextMs' | 'opened' | 'recover' | 'takeEffects' | 'tick' | 'transaction'
>;

/** One call by its name. */
export type TableCall = {
  [Name in keyof TableCalls]: { readonly name: Name; readonly args: Parameters<TableCalls[Name]> };
}[keyof TableCalls];

export type NumberedCall = TableCall & { readonly number: number };

/** An answer is sent when everything that its call has changed is on the disk. */
export type TableAnswer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: string };

export interface TableNews {
  readonly answers: readonly TableAnswer[];
  readonly effects: Effects;
}
