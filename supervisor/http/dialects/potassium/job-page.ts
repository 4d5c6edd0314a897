/** Describes a job as JSON, with its result, in pieces, so that other requests are served in between. */
import { ERRORS } from '../../../../protocol/errors.js';
import { JOBS_PATH } from '../../../../protocol/reserved-paths.js';
import type { JobRecord, KeptError, KeptResult } from '../../../jobs/kept-jobs.js';
import { statusOf } from '../../answer/house-error.js';
import { shownMessage } from '../../access/app-words.js';
import { readResult } from '../../answer/job-answers.js';
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
 * Describes a job, in pieces as they are sent. A JSON result is included as it is, another one in base64; one that is too
 * large for the page, or is not kept, is not.
 */
export async function describeJob(
  context: RequestContext,
  record: JobRecord,
  showsWords: boolean,
): Promise<readonly Buffer[]> {
  const facts = factsOf(record, showsWords);
  const result = record.end?.result ?? null;
  if (result === null) return [jsonOf({ ...facts, result: null })];
  const { status, contentType } = result.head;
  const isIncluded = !result.isDropped && result.bytes <= MAX_INCLUDED_BYTES;
  const body = isIncluded ? await readResult(context, record) : null;
  if (body === null)
    return [jsonOf({ ...facts, status, contentType, result: null, ...placeOf(record, result) })];
  const { encoding, json } = await included(result, body);
  const before = jsonOf({ ...facts, status, contentType, encoding }).subarray(0, -1);
  return [Buffer.concat([before, RESULT]), ...slicesOf(json, SENT_SLICE_BYTES), CLOSE];
}

/** Tells how to get a result that is not part of the page, or why it cannot be had. */
function placeOf({ id }: JobRecord, { isDropped, bytes }: KeptResult): object {
  if (!isDropped) return { resultUrl: `${JOBS_PATH}/${id}/result` };
  return { resultDropped: `There was no room for its ${bytes} bytes (--job-bytes, --max-output).` };
}

const RESULT = Buffer.from(',"result":');
const CLOSE = Buffer.from('}');

function jsonOf(description: object): Buffer {
  return Buffer.from(JSON.stringify(description));
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
 * The result as it is included. Made once, as long as the result is held: thousands of clients may read it. It is checked,
 * because an app may label anything as JSON: one invalid result would make the whole reply invalid.
 */
function included({ head }: KeptResult, body: Buffer): Promise<Included> {
  const known = includedOf.get(body);
  if (known !== undefined) return known;
  const isJson = isJsonType(head.contentType) ? inSlices(checkJson(body)) : Promise.resolve(false);
  const made = isJson.then((is) =>
    is
      ? { encoding: 'json', json: body }
      : { encoding: 'base64', json: Buffer.from(`"${body.toString('base64')}"`) },
  );
  includedOf.set(body, made);
  return made;
}

interface Included {
  readonly encoding: string;
  readonly json: Buffer;
}

const includedOf = new WeakMap<Buffer, Promise<Included>>();
