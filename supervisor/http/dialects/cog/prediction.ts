/** A job in the words of Cog: as a prediction, for its page, the answer to its creation, and its webhook. */
import { ERRORS } from '../../../../protocol/errors.js';
import {
  hasEnded,
  type JobRecord,
  type JobState,
  type KeptError,
  type PostedJob,
} from '../../../jobs/job-record.js';
import { shownMessage } from '../../access/app-words.js';

/** The ids of predictions are chosen by clients: with this before them they are ids of no other job. */
const ID_PREFIX = 'cog-';

/** The parameter of the call in which its job keeps the events that are posted. */
const EVENTS_FIELD = 'events';

export const EVENTS: readonly string[] = ['start', 'output', 'logs', 'completed'];

const STATUS: Readonly<Record<JobState, string>> = {
  queued: 'starting',
  running: 'processing',
  succeeded: 'succeeded',
  failed: 'failed',
  lost: 'failed',
  expired: 'failed',
  cancelled: 'canceled',
};

export function jobIdOf(id: string): string {
  return ID_PREFIX + id;
}

export function idOf({ id }: JobRecord): string {
  return id.slice(ID_PREFIX.length);
}

export function paramsOf(events: readonly string[]): string {
  return new URLSearchParams({ [EVENTS_FIELD]: events.join(' ') }).toString();
}

/**
 * JSON in pieces. `body`: the answer of the worker, which has input and output; null if there is none, or it is not kept.
 * Without `showsWords`, what the app wrote about its error is left out. `logs`: JSON in pieces; empty for a prediction
 * without this field.
 */
export function predictionOf(
  record: JobRecord,
  body: Buffer | null,
  showsWords: boolean,
  logs: readonly Buffer[],
): Buffer[] {
  const { state, createdAt, begunAt, end } = record;
  const isDropped = state === 'succeeded' && body === null;
  const error = end?.error ?? null;
  const facts = {
    id: idOf(record),
    status: isDropped ? STATUS.failed : STATUS[state],
    error: isDropped ? DROPPED : error === null ? null : textOf(error, showsWords),
    created_at: dateOf(createdAt),
    started_at: begunAt === null ? null : dateOf(begunAt),
    completed_at: end === null ? null : dateOf(end.endedAt),
    ...(end === null ? {} : { metrics: { predict_time: Math.round(1000 * end.runMs) / 1e6 } }),
  };
  const known: Buffer[] = [Buffer.from(JSON.stringify(facts).slice(0, -1))];
  if (logs.length > 0) known.push(Buffer.from(',"logs":'), ...logs);
  return body === null
    ? [...known, Buffer.from(',"output":null}')]
    : [...known, Buffer.from(','), body.subarray(1)];
}

const DROPPED =
  'The prediction succeeded, but there was no room to keep its output (--job-bytes, --max-output).';

function textOf(error: KeptError, showsWords: boolean): string {
  const issues = showsWords ? error.issues.map(({ path, message }) => ` ${path.join('.')}: ${message}.`) : [];
  return (shownMessage(error, showsWords) || ERRORS[error.code].message) + issues.join('');
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString();
}

/**
 * The body of a webhook at the begin or the end of a prediction; null for an event that its client did not want. The output
 * comes with the end.
 */
export function postOf({ record, call, body }: PostedJob): Buffer | null {
  const events = new URLSearchParams(call.dialectParams).get(EVENTS_FIELD)?.split(' ') ?? [];
  const hasOutput = record.state === 'succeeded';
  const isWanted = hasEnded(record)
    ? events.includes('completed') || (hasOutput && events.includes('output'))
    : events.includes('start');
  return isWanted ? Buffer.concat(predictionOf(record, body, true, [])) : null;
}
