/**
 * The transitions of a job, as pure functions of its record: every store follows them. A store checks that the job is in the
 * state that a transition needs, and that an attempt has the token that it claims. Besides, the bytes that a job counts for.
 */
import { ServeError, type ErrorCode } from '../../protocol/errors.js';
import {
  hasEnded,
  keptError,
  type EndState,
  type EndedRecord,
  type JobEnd,
  type JobRecord,
  type KeptError,
  type Outcome,
  type StoredCall,
} from './job-record.js';

/** Error codes of jobs that may have run, with unknown result. */
const LOST: ReadonlySet<ErrorCode> = new Set(['SERVE_WORKER_LOST']);

const RETRY_MS = 1000;
/** Each wait is so many times as long as the one before. */
const RETRY_FACTOR = 4;
const MAX_RETRY_MS = 60_000;

/** Least that a job counts for: its record and its places in the indexes of a store. */
export const LEAST_JOB_BYTES = 1024;

/** Most bytes of a JavaScript character in UTF-8 are three; nearly all of these texts are ASCII. */
export function bytesOfNew({ headers, path, query, bodyBytes }: StoredCall): number {
  return Math.max(LEAST_JOB_BYTES, bodyBytes + headers.length + path.length + query.length);
}

/** The call of a job that has ended is dropped with its body. */
export function bytesOfEnded(resultBytes: number): number {
  return Math.max(LEAST_JOB_BYTES, resultBytes);
}

/** When a queued job expires; Infinity once it has begun. */
export function expiresAt({ attempts, dueAt, ttlMs }: JobRecord): number {
  return attempts === 0 ? dueAt + ttlMs : Infinity;
}

/** `version`: that which runs it. */
export function begun(record: JobRecord, version: string, nowMs: number): JobRecord {
  const { attempts } = record;
  return { ...record, version, state: 'running', attempts: attempts + 1, begunAt: nowMs, progress: null };
}

/**
 * No worker has begun it, or can: it waits again as if it had not begun. `isLoss`: its worker died; after the second
 * one the job fails, because it may be what kills them.
 */
export function givenBack(record: JobRecord, isLoss: boolean, nowMs: number): JobRecord {
  const attempts = record.attempts - 1;
  const losses = record.losses + (isLoss ? 1 : 0);
  const begunAt = attempts === 0 ? null : record.begunAt;
  const dueAt = Math.min(record.dueAt, nowMs); // the clock may have been set back: it was due already
  const waiting: JobRecord = { ...record, state: 'queued', dueAt, attempts, losses, begunAt };
  if (record.isCancelled) return cancelled(waiting, nowMs);
  return losses > 1 ? failedUnrun(waiting, NOT_BEGUN, nowMs) : waiting;
}

/** The end of a running job, or the job in the queue again. `isDropped`: the store does not keep the body of the answer. */
export function settled(noted: JobRecord, outcome: Outcome, nowMs: number, isDropped: boolean): JobRecord {
  const { runMs, queueMs } = outcome;
  const record = { ...noted, progress: outcome.progress ?? noted.progress };
  const times = { endedAt: nowMs, runMs, queueMs };
  if ('error' in outcome) {
    const { error } = outcome;
    if (record.isCancelled) return ended(record, 'cancelled', { ...times, result: null, error: CANCELLED });
    if (mayRunAgain(record, error)) return queuedAgain(record, nowMs);
    return ended(record, LOST.has(error.code) ? 'lost' : 'failed', { ...times, result: null, error });
  }
  const { head, bytes } = outcome;
  const result = { head: { ...head, headers: '' }, bytes, isDropped };
  const progress = { fraction: 1, text: record.progress?.text ?? '' };
  return ended({ ...record, progress }, 'succeeded', { ...times, result, error: null });
}

/** The server died that ran it; as for the worker of a job that may have run to any point. */
export function lost(record: JobRecord, error: KeptError, nowMs: number): JobRecord {
  const { createdAt, begunAt } = record;
  return settled(record, { error, runMs: 0, queueMs: (begunAt ?? createdAt) - createdAt }, nowMs, true);
}

/** A queued job ends; a running one is noted as cancelled, and its outcome decides; an ended one stays as it is. */
export function cancelled(record: JobRecord, nowMs: number): JobRecord {
  if (hasEnded(record)) return record;
  if (record.state === 'queued') return endedUnrun(record, 'cancelled', CANCELLED, nowMs);
  return { ...record, isCancelled: true };
}

/** Its webhook was delivered or given up. */
export function webhookEnded(record: EndedRecord): EndedRecord {
  return { ...record, end: { ...record.end, owesWebhook: false } };
}

export function expired(record: JobRecord, nowMs: number): EndedRecord {
  return endedUnrun(record, 'expired', EXPIRED, nowMs);
}

/** A queued job fails: the server ends, or workers die with it. */
export function failedUnrun(record: JobRecord, error: KeptError, nowMs: number): EndedRecord {
  return endedUnrun(record, 'failed', error, nowMs);
}

/** Whether a store may keep what the outcome says of the answer; a job that is tried again has none yet. */
function mayRunAgain({ attempts, maxAttempts }: JobRecord, { code, status }: KeptError): boolean {
  if (attempts >= maxAttempts) return false;
  if (code === 'SERVE_INFERENCE_FAILED') return status === 0; // with a status of the app's choosing it is an answer
  return LOST.has(code) || code === 'SERVE_INFERENCE_TIMEOUT';
}

function queuedAgain(record: JobRecord, nowMs: number): JobRecord {
  const waitMs = Math.min(MAX_RETRY_MS, RETRY_MS * RETRY_FACTOR ** (record.attempts - 1));
  return { ...record, state: 'queued', dueAt: nowMs + waitMs, losses: 0, progress: null };
}

function endedUnrun(record: JobRecord, state: EndState, error: KeptError, nowMs: number): EndedRecord {
  const queueMs = nowMs - record.createdAt;
  return ended(record, state, { endedAt: nowMs, runMs: 0, queueMs, result: null, error });
}

function ended(record: JobRecord, state: EndState, end: Omit<JobEnd, 'owesWebhook'>): EndedRecord {
  return { ...record, state, end: { ...end, owesWebhook: record.hasWebhook } };
}

const CANCELLED = keptError(new ServeError('SERVE_JOB_CANCELLED'));
const NOT_BEGUN = keptError(new ServeError('SERVE_NOT_BEGUN'));
const EXPIRED = keptError(new ServeError('SERVE_JOB_EXPIRED'));
