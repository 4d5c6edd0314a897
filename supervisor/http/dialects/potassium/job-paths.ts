/** Answers the paths of jobs: one job, its result, everybody's jobs, and the end of a job that is not wanted any more. */
import { ServeError } from '../../../../protocol/errors.js';
import {
  JOB_STATES,
  hasEnded,
  type JobRecord,
  type JobState,
  type KeptError,
} from '../../../jobs/job-record.js';
import { NotAllowed, parseDurationMs } from '../../../options/units.js';
import { hiddenBecause, shownMessage } from '../../access/app-words.js';
import { JOB_ID_HEADER } from '../../access/client-headers.js';
import { HOLD_MS, readResult, whenEnded } from '../../answer/job-answers.js';
import { sendInTurns, type AnswerContext } from '../../answer/koa-answers.js';
import { SENT_SLICE_BYTES, slicesOf } from '../../json/slices.js';
import type { RequestContext } from '../../request/request-context.js';
import { queryOf } from '../../socket/request-facts.js';
import { turns } from '../../socket/shared-turns.js';
import { jobEvents } from './job-events.js';
import { describeJob, factsOf } from './job-page.js';

/** `GET` describes the job, at once or as it changes; `DELETE` ends it. */
export async function writeJob(ctx: AnswerContext, context: RequestContext, id: string): Promise<void> {
  if (context.request.method === 'DELETE') return cancel(ctx, context, id);
  const isShown = hiddenBecause(context) === null;
  if (/\btext\/event-stream\b/.test(context.request.headers.accept ?? '')) {
    found(await context.backend.jobs.get(id));
    ctx.type = 'text/event-stream';
    ctx.set('Cache-Control', 'no-store, no-transform'); // no proxy and no compression may hold events back
    ctx.set('X-Accel-Buffering', 'no');
    ctx.body = jobEvents(context, id, isShown);
    return;
  }
  const record = found(await whenEnded(context, id, waitOf(context)));
  ctx.type = 'application/json';
  sendInTurns(ctx, await describeJob(context, record, isShown));
}

async function cancel(ctx: AnswerContext, context: RequestContext, id: string): Promise<void> {
  const before = found(await context.backend.jobs.cancel(id));
  if (hasEnded(before)) throw new ServeError('SERVE_JOB_ENDED');
  ctx.body = null; // makes the status 204
  if (before.state !== 'queued') ctx.status = 202;
}

/** Answers as the call would have: with the status, the type and the bytes of the app, or with the error. */
export async function writeResult(ctx: AnswerContext, context: RequestContext, id: string): Promise<void> {
  const record = found(await whenEnded(context, id, waitOf(context)));
  const isShown = hiddenBecause(context) === null;
  if (!hasEnded(record)) {
    ctx.status = 202;
    ctx.set(JOB_ID_HEADER, id); // tells it from an app's own 202
    ctx.body = factsOf(record, isShown);
    return;
  }
  const { error, result } = record.end;
  if (error !== null) throw shownError(error, isShown, record.begunAt !== null);
  const body = await readResult(context, record);
  if (body === null || result === null) throw new ServeError('SERVE_RESULT_DROPPED');
  const { status, contentType, phrase } = result.head;
  ctx.status = status;
  if (phrase !== '') ctx.message = phrase;
  if (contentType !== '') ctx.set('Content-Type', contentType);
  sendInTurns(ctx, { pieces: slicesOf(body, SENT_SLICE_BYTES), bytes: body.length });
}

export async function writeJobs(ctx: AnswerContext, context: RequestContext): Promise<void> {
  if (hiddenBecause(context) !== null)
    throw new ServeError(
      'SERVE_FORBIDDEN',
      'Without a key, only programs of this machine may read the list of jobs.',
    );
  const query = new URLSearchParams(queryOf(context));
  const page = await context.backend.jobs.list({
    state: stateIn(query.get('state')),
    limit: wholeIn(query.get('limit'), 'limit', MAX_LISTED) ?? MAX_LISTED,
    from: wholeIn(query.get('cursor'), 'cursor', Number.MAX_SAFE_INTEGER),
  });
  await turns.own(); // a store may answer many at once
  ctx.body = {
    jobs: page.records.map((record) => factsOf(record, true)),
    cursor: page.next === null ? null : String(page.next),
  };
}

/** The error of a job as its client may see it. */
function shownError(error: KeptError, showsWords: boolean, begun: boolean): ServeError {
  const message = shownMessage(error, showsWords);
  return new ServeError(error.code, message === '' ? undefined : message, {
    ...error,
    issues: showsWords ? error.issues : [],
    begun,
  });
}

/** Most jobs on a page of the list. */
const MAX_LISTED = 100;

function found(record: JobRecord | null): JobRecord {
  if (record !== null) return record;
  throw new ServeError('SERVE_NOT_FOUND', 'There is no such job, or it is no longer kept.');
}

/** The wait that the client asks for, no longer than a gateway holds its clients. @throws SERVE_BAD_REQUEST */
function waitOf(context: RequestContext): number {
  const wait = new URLSearchParams(queryOf(context)).get('wait');
  if (wait === null) return 0;
  try {
    const waitMs = parseDurationMs(wait);
    if (waitMs <= HOLD_MS) return waitMs;
  } catch (thrown) {
    if (!(thrown instanceof NotAllowed)) throw thrown;
    throw new ServeError('SERVE_BAD_REQUEST', `wait must be ${thrown.message}, 50s at most.`);
  }
  throw new ServeError('SERVE_BAD_REQUEST', 'wait must be 50s at most; ask again for a longer one.');
}

function stateIn(state: string | null): JobState | null {
  if (state === null) return null;
  const known = JOB_STATES.find((one) => one === state);
  if (known !== undefined) return known;
  throw new ServeError('SERVE_BAD_REQUEST', `state must be one of ${JOB_STATES.join(', ')}.`);
}

function wholeIn(text: string | null, name: string, max: number): number | null {
  if (text === null) return null;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= max) return value;
  throw new ServeError('SERVE_BAD_REQUEST', `${name} must be a whole number from 1 to ${max}.`);
}
