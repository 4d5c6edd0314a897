/**
 * A job as BullMQ has it. Its data is the record as it was written last, with the call; where it is (waiting, active, ended)
 * and what BullMQ counts (`processedOn`, `stc`) say the rest. So a fetch alone makes it running, in one step.
 */
import { createHash } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import { ServeError } from '../../../protocol/errors.js';
import {
  hasEnded,
  keptError,
  type EndedRecord,
  type IdempotencyKey,
  type JobProgress,
  type JobRecord,
  type NewJob,
  type StoredCall,
} from '../job-record.js';
import { begun } from '../job-rules.js';

export interface JobData {
  /** As it was accepted, given back, tried again, or ended. */
  readonly record: JobRecord;
  /** Null once it has ended, unless its webhook needs it. */
  readonly call: StoredCall | null;
  /** The body, if it is text of at most 64 KiB; else it has a key of its own. */
  readonly body?: string;
  /** Hash of its idempotency key, for people. */
  readonly key?: string;
  /** Number of times that BullMQ had found it without a lock when this was written: one more, and its server has died. */
  readonly stalls: number;
  /** The token of the attempt that wrote this; empty if none did. */
  readonly by: string;
}

/** A job as a script reads it. */
export interface ReadJob {
  readonly id: string;
  readonly queue: string;
  readonly data: JobData;
  readonly record: JobRecord;
  /** Number of times that it was fetched: a change of a job that waits is refused if it was fetched since. */
  readonly fetches: string;
  /** Number of times that BullMQ has found it without a lock. */
  readonly stalls: number;
}

const MAX_TEXT_BYTES = 64 * 1024;

/** The most urgent jobs have 9; with BullMQ 1 goes first, and 0 is for those that it found without a lock. */
const LEAST_URGENT = 10;

/** The data of a new job; its body too, if that needs a key of its own. */
export function newData({ record, call, body, key }: NewJob): { data: JobData; body: Buffer | null } {
  const bytes = body.pieces.length === 1 ? (body.pieces[0] as Buffer) : Buffer.concat(body.pieces);
  const isText = bytes.length <= MAX_TEXT_BYTES && isUtf8(bytes);
  const data = {
    record,
    call,
    ...(isText ? { body: bytes.toString() } : {}),
    ...(key === null ? {} : { key: hashOf(key) }),
    stalls: 0,
    by: '',
  };
  return { data, body: isText ? null : bytes };
}

/** A job's fields in BullMQ: name, data, options, timestamp, delay and priority. */
export function bullJob(record: JobRecord, data: JobData, nowMs: number): (string | number)[] {
  const { id, route, createdAt, dueAt } = record;
  const delay = Math.max(0, dueAt - nowMs);
  const priority = LEAST_URGENT - record.priority;
  const options = JSON.stringify({ jobId: id, priority, ...(delay > 0 ? { delay } : {}) });
  const timestamp = delay > 0 ? nowMs : createdAt;
  return [route, JSON.stringify(data), options, timestamp, delay, priority];
}

function hashOf({ scope }: IdempotencyKey): string {
  return createHash('sha256').update(scope).digest('base64url');
}

/** The data of a job whose record is another one now. `by`: the token of the attempt that is over. */
export function nextData(was: JobData, record: JobRecord, stalls: number, by: string): JobData {
  if (!hasEnded(record)) return { ...was, record, stalls, by };
  const { body: _body, ...rest } = was;
  return { ...rest, record, call: record.end.owesWebhook ? was.call : null, stalls, by };
}

/** The name of the worker of a fetch, for BullMQ: the version that runs the job, and the token. */
export function workerName(version: string, token: string): string {
  return `${version}\n${token}`;
}

/** The record of a job that was fetched. */
export function fetchedRecord({ record }: JobData, worker: string, atMs: number): JobRecord {
  return hasEnded(record) ? record : begun(record, worker.slice(0, worker.lastIndexOf('\n')), atMs);
}

/** Progress, with the attempt that reported it. */
export interface AttemptProgress extends JobProgress {
  readonly attempt: number;
}

export const LOST = keptError(new ServeError('SERVE_WORKER_LOST'));
const CANCELLED = keptError(new ServeError('SERVE_JOB_CANCELLED'));

/** Reads the answer of a script; null if there is no such job. */
export function readJob(reply: unknown): ReadJob | null {
  if (!Array.isArray(reply) || reply.length === 0) return null;
  const [
    id,
    queue,
    isDropped,
    waits,
    isOwed,
    text,
    processedOn,
    worker,
    progress,
    isCancelled,
    fetches,
    stalls,
  ] = reply as [string, string, ...string[]];
  const data = JSON.parse(text as string) as JobData;
  const read = (record: JobRecord): ReadJob => ({
    ...{ id, queue, data, record },
    fetches: fetches ?? '',
    stalls: Number(stalls),
  });
  if (hasEnded(data.record))
    return read(endedRecord(data.record, isDropped === '1', isOwed === '1', isCancelled === '1'));
  if (waits === '1') return read(data.record);
  const running = fetchedRecord(data, worker ?? '', Math.floor(Number(processedOn)));
  const last = JSON.parse(
    progress === '' || progress === undefined ? 'null' : progress,
  ) as AttemptProgress | null;
  const { attempt = 0, ...report } = last ?? { fraction: 0, text: '' };
  return read({
    ...running,
    isCancelled: isCancelled === '1',
    progress: attempt === running.attempts ? report : null,
  });
}

/** `isCancelled`: it was cancelled while it ran, which its last server may not have known when it stored a failure. */
export function endedRecord(
  record: EndedRecord,
  isDropped: boolean,
  owesWebhook: boolean,
  isCancelled: boolean,
): EndedRecord {
  const { result, error } = record.end;
  const end = { ...record.end, owesWebhook, result: result === null ? null : { ...result, isDropped } };
  if (!isCancelled || error === null)
    return { ...record, isCancelled: record.isCancelled || isCancelled, end };
  return { ...record, state: 'cancelled', isCancelled, end: { ...end, error: CANCELLED } };
}
