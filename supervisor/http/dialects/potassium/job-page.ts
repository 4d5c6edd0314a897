/**
 * Writes the answer to `GET /_k/jobs/:id`, which describes a job with its result, in pieces, so that other requests are
 * served in between.
 */
import { ERRORS } from '../../../../protocol/errors.js';
import type { JobRecord, KeptError, KeptResult } from '../../../jobs/kept-jobs.js';
import { statusOf } from '../../answer/house-error.js';
import { isJson } from '../../call/route-check.js';
import { SLICE_BYTES, checkJson, inSlices, slicesOf } from '../../json/slices.js';

export interface Description {
  readonly pieces: Iterable<Buffer>;
  /** Total size of the pieces. */
  readonly bytes: number;
}

/** Describes a job. JSON results are included as they are, whatever their size; others in base64. `body`: null if it is dropped. */
export async function describeJob(record: JobRecord, body: Buffer | null): Promise<Description> {
  const { id, requestId, model, version, route, state, createdAt, end } = record;
  const facts = {
    id,
    state,
    requestId,
    model,
    version,
    route,
    createdAt: new Date(createdAt).toISOString(),
    endedAt: end === null ? null : new Date(end.endedAt).toISOString(),
    runMs: Math.round((end?.runMs ?? 0) * 1000) / 1000,
    error: end === null || end.error === null ? null : describeError(end.error),
  };
  const result = end?.result ?? null;
  if (result === null) return whole(Buffer.from(JSON.stringify({ ...facts, result: null })));
  const { status, contentType } = result.head;
  const encoding = body === null || (await isIncludedAsJson(result, body)) ? 'json' : 'base64';
  const before = Buffer.from(
    `${JSON.stringify({ ...facts, status, contentType, encoding }).slice(0, -1)},"result":`,
  );
  const { pieces, bytes } = body === null ? whole(NULL) : encoding === 'json' ? jsonOf(body) : base64Of(body);
  return { pieces: joined([before], pieces, [CLOSE]), bytes: before.length + bytes + CLOSE.length };
}

const CLOSE = Buffer.from('}');
const NULL = Buffer.from('null');

function describeError(error: KeptError): object {
  const { code, message, issues } = error;
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
  return { pieces: slicesOf(body), bytes: body.length };
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
