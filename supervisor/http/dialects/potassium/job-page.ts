/**
 * Writes the answer to `GET /_k/jobs/:id`, which describes a job with its result, in pieces, so that other requests are
 * served in between.
 */
import { ERRORS, type ServeError } from '../../../../protocol/errors.js';
import type { KeptJob, KeptResult } from '../../../jobs/kept-jobs.js';
import { statusOf } from '../../answer/house-error.js';
import { shownMessage } from '../../access/app-words.js';
import { isJson } from '../../call/route-check.js';
import { SLICE_BYTES, checkJson, inSlices, slicesOf } from '../../json/slices.js';

export interface Description {
  readonly pieces: Iterable<Buffer>;
  /** Total size of the pieces. */
  readonly bytes: number;
}

/**
 * Describes a job. JSON results are included as they are, whatever their size; others in base64. Without `showsWords`, what
 * the app wrote about its error is empty.
 */
export async function describeJob(kept: KeptJob, showsWords: boolean): Promise<Description> {
  const { id, requestId, model, version, route, runMs, createdAt, endedAt, error, result } = kept;
  const facts = {
    id,
    state: kept.lookUpState(),
    requestId,
    model,
    version,
    route,
    createdAt: createdAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
    runMs: Math.round(runMs * 1000) / 1000,
    error: error === null ? null : describeError(error, showsWords),
  };
  if (result === null) return whole(Buffer.from(JSON.stringify({ ...facts, result: null })));
  const { status, contentType } = result.head;
  const encoding = (await isIncludedAsJson(result)) ? 'json' : 'base64';
  const before = Buffer.from(
    `${JSON.stringify({ ...facts, status, contentType, encoding }).slice(0, -1)},"result":`,
  );
  const { pieces, bytes } = encoding === 'json' ? jsonOf(result) : base64Of(result.body as Buffer);
  return { pieces: joined([before], pieces, [CLOSE]), bytes: before.length + bytes + CLOSE.length };
}

const CLOSE = Buffer.from('}');

function describeError(error: ServeError, showsWords: boolean): object {
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
function isIncludedAsJson(result: KeptResult): Promise<boolean> {
  const known = verdicts.get(result);
  if (known !== undefined) return known;
  const { head, body } = result;
  const verdict =
    body === null
      ? Promise.resolve(true)
      : isJson(head.contentType)
        ? inSlices(checkJson(body))
        : Promise.resolve(false);
  verdicts.set(result, verdict);
  return verdict;
}

const verdicts = new WeakMap<KeptResult, Promise<boolean>>();

function jsonOf({ body }: KeptResult): Description {
  return body === null ? whole(Buffer.from('null')) : { pieces: slicesOf(body), bytes: body.length };
}

/** Encodes base64 while it is sent, and does not keep it: it is a third larger than the bytes. */
function base64Of(body: Buffer): Description {
  return { pieces: joined([QUOTE], base64Slices(body), [QUOTE]), bytes: 4 * Math.ceil(body.length / 3) + 2 };
}

const QUOTE = Buffer.from('"');

function* base64Slices(body: Buffer): Generator<Buffer> {
  const step = SLICE_BYTES - (SLICE_BYTES % 3); // three bytes are four characters
  for (let start = 0; start < body.length; start += step)
    yield Buffer.from(body.toString('base64', start, Math.min(body.length, start + step)), 'latin1');
}

function whole(bytes: Buffer): Description {
  return { pieces: [bytes], bytes: bytes.length };
}

function* joined(...parts: readonly Iterable<Buffer>[]): Generator<Buffer> {
  for (const part of parts) yield* part;
}
