/** The transitions of a job, as pure functions of its record: every store follows them. */
import type { ErrorCode } from '../../protocol/errors.js';
import type { EndState, EndedRecord, JobEnd, JobRecord, KeptError, Outcome } from './job-record.js';

/** Error codes of jobs that may have run, with unknown result. */
const LOST: ReadonlySet<ErrorCode> = new Set(['SERVE_WORKER_LOST']);

export function begun(record: JobRecord, nowMs: number): JobRecord {
  return { ...record, state: 'running', attempts: record.attempts + 1, begunAt: nowMs };
}

/** No worker has begun it, or can: it waits again as if it had not been marked. `isLoss`: its worker died. */
export function givenBack(record: JobRecord, isLoss: boolean): JobRecord {
  const attempts = record.attempts - 1;
  const losses = record.losses + (isLoss ? 1 : 0);
  return { ...record, state: 'queued', attempts, losses, begunAt: null };
}

/** `isDropped`: the store does not keep the body of the answer. */
export function settled(record: JobRecord, outcome: Outcome, nowMs: number, isDropped: boolean): EndedRecord {
  const { runMs, queueMs } = outcome;
  const times = { endedAt: nowMs, runMs, queueMs };
  if ('error' in outcome) {
    const { error } = outcome;
    return ended(record, LOST.has(error.code) ? 'lost' : 'failed', { ...times, result: null, error });
  }
  const { head, bytes } = outcome;
  const result = { head: { ...head, headers: '' }, bytes, isDropped };
  return ended(record, 'succeeded', { ...times, result, error: null });
}

/** It ends without having run. */
export function failedUnrun(record: JobRecord, error: KeptError, nowMs: number): EndedRecord {
  const queueMs = nowMs - record.createdAt;
  return ended(record, 'failed', { endedAt: nowMs, runMs: 0, queueMs, result: null, error });
}

function ended(record: JobRecord, state: EndState, end: JobEnd): EndedRecord {
  return { ...record, state, end };
}
