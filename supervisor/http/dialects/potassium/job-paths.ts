/**
 * Answers the paths of jobs: one job, its result, everybody's jobs, and the end of a job that is not wanted any more. A job is
 * described as JSON, with its result, in pieces, so that other requests are served in between.
 */
import { Readable } from 'node:stream';
import { ERRORS, ServeError } from '../../../../protocol/errors.js';
import { JOBS_PATH } from '../../../../protocol/reserved-paths.js';
import {
  JOB_STATES,
  hasEnded,
  type JobRecord,
  type JobState,
  type KeptError,
  type KeptResult,
} from '../../../jobs/job-record.js';
import { deferred } from '../../../machine/deferred.js';
import { within } from '../../../machine/limit-timer.js';
import { NotAllowed, parseDurationMs } from '../../../options/units.js';
import { hiddenBecause, shownMessage } from '../../access/app-words.js';
import { JOB_ID_HEADER } from '../../access/client-headers.js';
import { statusOf } from '../../answer/house-error.js';
import { HOLD_MS, readResult, whenEnded } from '../../answer/job-answers.js';
import { sendInTurns, type AnswerContext, type Pieces } from '../../answer/koa-answers.js';
import { isJson as isJsonType } from '../../call/find-route.js';
import { SENT_SLICE_BYTES, inSlices, inTurns, slicesOf } from '../../json/slices.js';
import { checkJson } from '../../json/top-level-fields.js';
import type { RequestContext } from '../../request/request-context.js';
import { onceClosed, queryOf } from '../../socket/request-facts.js';
import { turns } from '../../socket/shared-turns.js';

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

/** Larger results are not part of the page: it names their own. */
export const MAX_INCLUDED_BYTES = 1024 * 1024;

/** Everything about a job but its result. Without `showsWords`, what the app wrote about its error is empty. */
function factsOf(record: JobRecord, showsWords: boolean): object {
  const { id, requestId, model, version, route, state, createdAt, attempts, begunAt, progress, end } = record;
  return {
    id,
    state,
    requestId,
    model,
    version,
    route,
    createdAt: dateOf(createdAt),
    attempts,
    begunAt: begunAt === null ? null : dateOf(begunAt),
    endedAt: end === null ? null : dateOf(end.endedAt),
    progress,
    runMs: Math.round((end?.runMs ?? 0) * 1000) / 1000,
    error: end === null || end.error === null ? null : describeError(end.error, showsWords),
  };
}

/**
 * Describes a job. A JSON result is included as it is, another one in base64; one that is too large for the page, or is not
 * kept, is not.
 */
export async function describeJob(
  context: RequestContext,
  record: JobRecord,
  showsWords: boolean,
): Promise<Pieces> {
  const facts = factsOf(record, showsWords);
  const result = record.end?.result ?? null;
  if (result === null) return whole({ ...facts, result: null });
  const { status, contentType } = result.head;
  const isIncluded = !result.isDropped && result.bytes <= MAX_INCLUDED_BYTES;
  const body = isIncluded ? await readResult(context, record) : null;
  if (body === null)
    return whole({ ...facts, status, contentType, result: null, ...placeOf(record, result) });
  const isJson = await isIncludedAsJson(result, body);
  const encoding = isJson ? 'json' : 'base64';
  const before = Buffer.from(
    `${JSON.stringify({ ...facts, status, contentType, encoding }).slice(0, -1)},"result":`,
  );
  const included = isJson ? slicesOf(body, SENT_SLICE_BYTES) : base64Of(body);
  const includedBytes = isJson ? body.length : 4 * Math.ceil(body.length / 3) + 2 * QUOTE.length;
  return {
    pieces: joined([before], included, [CLOSE]),
    bytes: before.length + includedBytes + CLOSE.length,
  };
}

/** Tells how to get a result that is not part of the page, or why it cannot be had. */
function placeOf({ id }: JobRecord, { isDropped, bytes }: KeptResult): object {
  if (!isDropped) return { resultUrl: `${JOBS_PATH}/${id}/result` };
  return { resultDropped: `There was no room for its ${bytes} bytes (--job-bytes, --max-output).` };
}

const CLOSE = Buffer.from('}');
const QUOTE = Buffer.from('"');

function whole(description: object): Pieces {
  const json = Buffer.from(JSON.stringify(description));
  return { pieces: [json], bytes: json.length };
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString();
}

function describeError(error: KeptError, showsWords: boolean): object {
  const { code } = error;
  const issues = showsWords ? error.issues : [];
  const message = shownMessage(error, showsWords);
  const facts = { code, message, source: ERRORS[code].source, status: statusOf(error) };
  return issues.length === 0 ? facts : { ...facts, issues };
}

/**
 * Whether the result is included as JSON. Checked once per result, because an app may label anything as JSON: one
 * invalid result would make the whole reply invalid.
 */
function isIncludedAsJson({ head }: KeptResult, body: Buffer): Promise<boolean> {
  const known = verdicts.get(body);
  if (known !== undefined) return known;
  const verdict = isJsonType(head.contentType) ? inSlices(checkJson(body)) : Promise.resolve(false);
  verdicts.set(body, verdict);
  return verdict;
}

/** Verdicts only: a store in memory holds these bodies, so all that is kept for them would be kept as long as the jobs. */
const verdicts = new WeakMap<Buffer, Promise<boolean>>();

function* base64Of(body: Buffer): Generator<Buffer> {
  const step = SENT_SLICE_BYTES - (SENT_SLICE_BYTES % 3); // three bytes are four characters
  yield QUOTE;
  for (let start = 0; start < body.length; start += step)
    yield Buffer.from(body.toString('base64', start, Math.min(body.length, start + step)), 'latin1');
  yield QUOTE;
}

function* joined(...parts: readonly Iterable<Buffer>[]): Generator<Buffer> {
  for (const part of parts) yield* part;
}

/** Proxies and load balancers drop a connection on which nothing comes for a minute. */
const KEEP_ALIVE_MS = 20_000;
const KEEP_ALIVE = Buffer.from(':\n\n');

/**
 * Server-sent events about one job: its page at first and at each change, the last one with its end. A client that reads
 * slowly gets the newest page, not every one. Watches the job from the first read on, until the client has gone or the stream
 * has ended.
 */
export function jobEvents(context: RequestContext, id: string, showsWords: boolean): Readable {
  return Readable.from(eventsOf(context, id, showsWords), { objectMode: false });
}

async function* eventsOf(context: RequestContext, id: string, showsWords: boolean): AsyncGenerator<Buffer> {
  const { backend, request, response } = context;
  let news = deferred<true>();
  let isOver = false as boolean;
  const end = (): void => {
    isOver = true;
    news.resolve(true);
  };
  const unwatch = backend.jobs.watchers.add(id, (record) => {
    if (record !== null) news.resolve(true);
    else if (response.writableNeedDrain)
      response.destroy(); // the server's end does not wait for a client that does not read
    else end();
  });
  onceClosed(request, response, end);
  try {
    for (;;) {
      news = deferred(); // before the look, or a change in between would be missed
      const record = await backend.jobs.get(id);
      if (record === null) return;
      const { pieces, bytes } = await describeJob(context, record, showsWords);
      // A large one is made and sent in pieces as its client takes them: thousands may watch one job.
      if (bytes > SENT_SLICE_BYTES) {
        yield DATA;
        for await (const piece of inTurns(pieces)) yield onOneLine(piece);
        yield END;
      } else yield Buffer.concat([DATA, ...Array.from(pieces, onOneLine), END]);
      if (isOver || hasEnded(record)) return;
      while ((await within(KEEP_ALIVE_MS, news.promise)) === null) yield KEEP_ALIVE;
    }
  } finally {
    unwatch();
  }
}

const DATA = Buffer.from('data: ');
const END = Buffer.from('\n\n');
const [LINE_FEED, RETURN, SPACE] = [0x0a, 0x0d, 0x20];

/** A line break in JSON is white space, and would end the event. */
function onOneLine(json: Buffer): Buffer {
  if (!json.includes(LINE_FEED) && !json.includes(RETURN)) return json;
  return Buffer.from(json.map((byte) => (byte === LINE_FEED || byte === RETURN ? SPACE : byte)));
}
