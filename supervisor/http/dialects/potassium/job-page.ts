/** Describes a job as JSON, with its result, in pieces, so that other requests are served in between. */
import { ERRORS } from '../../../../protocol/errors.js';
import { JOBS_PATH } from '../../../../protocol/reserved-paths.js';
import type { JobRecord, KeptError, KeptResult } from '../../../jobs/job-record.js';
import { statusOf } from '../../answer/house-error.js';
import { shownMessage } from '../../access/app-words.js';
import { readResult } from '../../answer/job-answers.js';
import type { Pieces } from '../../answer/koa-answers.js';
import { isJson as isJsonType } from '../../call/find-route.js';
import { SENT_SLICE_BYTES, inSlices, slicesOf } from '../../json/slices.js';
import { checkJson } from '../../json/top-level-fields.js';
import type { RequestContext } from '../../request/request-context.js';

/** Larger results are not part of the page: it names their own. */
export const MAX_INCLUDED_BYTES = 1024 * 1024;

/** Everything about a job but its result. Without `showsWords`, what the app wrote about its error is empty. */
export function factsOf(record: JobRecord, showsWords: boolean): object {
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
