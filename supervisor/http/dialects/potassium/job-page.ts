/** Describes a job as JSON, with its result, in pieces, so that other requests are served in between. */
import { ERRORS } from '../../../../protocol/errors.js';
import { JOBS_PATH } from '../../../../protocol/reserved-paths.js';
import type { JobRecord, KeptError, KeptResult } from '../../../jobs/kept-jobs.js';
import { statusOf } from '../../answer/house-error.js';
import { shownMessage } from '../../access/app-words.js';
import { isJson } from '../../call/find-route.js';
import { SENT_SLICE_BYTES, checkJson, inSlices, slicesOf } from '../../json/slices.js';

export interface Description {
  readonly pieces: Iterable<Buffer>;
  /** Total size of the pieces. */
  readonly bytes: number;
}

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

/** Whether the page includes the result of this job. */
export function includesResult({ end }: JobRecord): boolean {
  const result = end?.result ?? null;
  return result !== null && !result.isDropped && result.bytes <= MAX_INCLUDED_BYTES;
}

/** Describes a job. A JSON result is included as it is, another one in base64. `body`: null if it is not to be included. */
export async function describeJob(
  record: JobRecord,
  body: Buffer | null,
  showsWords: boolean,
): Promise<Description> {
  const facts = factsOf(record, showsWords);
  const result = record.end?.result ?? null;
  if (result === null) return whole({ ...facts, result: null });
  const { status, contentType } = result.head;
  if (body === null)
    return whole({ ...facts, status, contentType, result: null, ...placeOf(record, result) });
  const encoding = (await isIncludedAsJson(result, body)) ? 'json' : 'base64';
  const before = Buffer.from(
    `${JSON.stringify({ ...facts, status, contentType, encoding }).slice(0, -1)},"result":`,
  );
  const { pieces, bytes } = encoding === 'json' ? jsonOf(body) : base64Of(body);
  return { pieces: joined([before], pieces, [CLOSE]), bytes: before.length + bytes + CLOSE.length };
}

/** Tells how to get a result that is not part of the page, or why it cannot be had. */
function placeOf({ id }: JobRecord, { isDropped, bytes }: KeptResult): object {
  if (!isDropped) return { resultUrl: `${JOBS_PATH}/${id}/result` };
  return { resultDropped: `There was no room for its ${bytes} bytes (--job-bytes, --max-output).` };
}

const CLOSE = Buffer.from('}');

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
  const verdict = isJson(head.contentType) ? inSlices(checkJson(body)) : Promise.resolve(false);
  verdicts.set(body, verdict);
  return verdict;
}

const verdicts = new WeakMap<Buffer, Promise<boolean>>();

function jsonOf(body: Buffer): Description {
  return { pieces: slicesOf(body, SENT_SLICE_BYTES), bytes: body.length };
}

/** Encodes base64 while it is sent, and does not keep it: it is a third larger than the bytes. */
function base64Of(body: Buffer): Description {
  return { pieces: joined([QUOTE], base64Slices(body), [QUOTE]), bytes: 4 * Math.ceil(body.length / 3) + 2 };
}

const QUOTE = Buffer.from('"');

function* base64Slices(body: Buffer): Generator<Buffer> {
  const step = SENT_SLICE_BYTES - (SENT_SLICE_BYTES % 3); // three bytes are four characters
  for (let start = 0; start < body.length; start += step)
    yield Buffer.from(body.toString('base64', start, Math.min(body.length, start + step)), 'latin1');
}

function whole(description: object): Description {
  const bytes = Buffer.from(JSON.stringify(description));
  return { pieces: [bytes], bytes: bytes.length };
}

function* joined(...parts: readonly Iterable<Buffer>[]): Generator<Buffer> {
  for (const part of parts) yield* part;
}
