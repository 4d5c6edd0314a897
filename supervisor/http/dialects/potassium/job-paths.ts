/** Answers the paths of jobs: one job, its result, everybody's jobs, and the end of a job that is not wanted any more. */
import { Readable } from 'node:stream';
import { ServeError } from '../../../../protocol/errors.js';
import { JOBS_PATH } from '../../../../protocol/reserved-paths.js';
import {
  JOB_STATES,
  hasEnded,
  type JobRecord,
  type JobState,
  type KeptError,
} from '../../../jobs/kept-jobs.js';
import { NotAllowed, parseDurationMs } from '../../../options/units.js';
import { hiddenBecause, shownMessage } from '../../access/app-words.js';
import { HOLD_MS, readResult, whenEnded } from '../../answer/job-answers.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import { PathTable } from '../../call/path-table.js';
import { SENT_SLICE_BYTES, inTurns, slicesOf } from '../../json/slices.js';
import type { RequestContext } from '../../request/request-context.js';
import { turns } from '../../socket/shared-turns.js';
import { JobEvents } from './job-events.js';
import { describeJob, factsOf, includesResult } from './job-page.js';

type Write = (ctx: AnswerContext, context: RequestContext, id: string) => Promise<void>;

export interface JobPath {
  /** As an `Allow` header lists them. */
  readonly methods: string;
  readonly read: Write;
  /** Null if the path does not take `DELETE`. */
  readonly remove: Write | null;
}

const READ = 'GET, HEAD';

export const JOB_PATHS = new PathTable<JobPath>([
  [JOBS_PATH, { methods: READ, read: writeList, remove: null }],
  [`${JOBS_PATH}/{id}`, { methods: `${READ}, DELETE`, read: writeJob, remove: cancel }],
  [`${JOBS_PATH}/{id}/result`, { methods: READ, read: writeResult, remove: null }],
]);

async function writeJob(...[ctx, context, id]: Parameters<Write>): Promise<void> {
  if (/\btext\/event-stream\b/.test(context.request.headers.accept ?? '')) {
    found(await context.backend.jobs.get(id));
    ctx.type = 'text/event-stream';
    ctx.set('Cache-Control', 'no-store, no-transform'); // no proxy and no compression may hold events back
    ctx.set('X-Accel-Buffering', 'no');
    ctx.body = new JobEvents(context, id, showsWords(context));
    return;
  }
  const record = found(await whenEnded(context, id, waitOf(context)));
  const body = includesResult(record) ? await readResult(context, record) : null;
  const { pieces, bytes } = await describeJob(record, body, showsWords(context));
  ctx.type = 'application/json';
  send(ctx, pieces, bytes);
}

/** Answers as the call would have: with the status, the type and the bytes of the app, or with the error. */
async function writeResult(...[ctx, context, id]: Parameters<Write>): Promise<void> {
  const record = found(await whenEnded(context, id, waitOf(context)));
  if (!hasEnded(record)) {
    ctx.status = 202;
    ctx.body = factsOf(record, showsWords(context));
    return;
  }
  const { error, result } = record.end;
  if (error !== null) throw shownError(error, showsWords(context));
  const body = await readResult(context, record);
  if (body === null || result === null) throw new ServeError('SERVE_RESULT_DROPPED');
  const { status, contentType, phrase } = result.head;
  ctx.status = status;
  if (phrase !== '') ctx.message = phrase;
  if (contentType !== '') ctx.set('Content-Type', contentType);
  send(ctx, slicesOf(body, SENT_SLICE_BYTES), body.length);
}

/** Sends the pieces as the client takes them: thousands may request one result. */
function send(ctx: AnswerContext, pieces: Iterable<Buffer>, bytes: number): void {
  ctx.body = Readable.from(inTurns(pieces), { objectMode: false });
  ctx.length = bytes;
}

async function writeList(...[ctx, context]: Parameters<Write>): Promise<void> {
  if (!showsWords(context))
    throw new ServeError(
      'SERVE_FORBIDDEN',
      'Without a key, only programs of this machine may read the list of jobs.',
    );
  const query = queryOf(context);
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

async function cancel(...[ctx, context, id]: Parameters<Write>): Promise<void> {
  const before = found(await context.backend.jobs.cancel(id));
  if (hasEnded(before)) throw new ServeError('SERVE_JOB_ENDED');
  ctx.body = null; // makes the status 204
  if (before.state !== 'queued') ctx.status = 202;
}

/** Whether the client may read the app's words. */
function showsWords(context: RequestContext): boolean {
  return hiddenBecause(context) === null;
}

/** The error of a job as its client may see it. */
function shownError(error: KeptError, showsWords: boolean): ServeError {
  const message = shownMessage(error, showsWords);
  return new ServeError(error.code, message === '' ? undefined : message, {
    ...error,
    issues: showsWords ? error.issues : [],
  });
}

/** Most jobs on a page of the list. */
const MAX_LISTED = 100;

function found(record: JobRecord | null): JobRecord {
  if (record !== null) return record;
  throw new ServeError('SERVE_NOT_FOUND', 'There is no such job, or it is no longer kept.');
}

function queryOf({ request: { url = '' } }: RequestContext): URLSearchParams {
  const question = url.indexOf('?');
  return new URLSearchParams(question < 0 ? '' : url.slice(question + 1));
}

/** The wait that the client asks for, no longer than a gateway holds its clients. @throws SERVE_BAD_REQUEST */
function waitOf(context: RequestContext): number {
  const wait = queryOf(context).get('wait');
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
