/** The client's wishes for its job: when it may begin, and that it is stored once. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import type { CallMessage } from '../../dispatch/call.js';
import type { IdempotencyKey } from '../../jobs/job-record.js';
import { keyOf } from '../access/api-keys.js';
import { inSlices } from '../json/slices.js';
import type { RequestContext } from '../request/request-context.js';

export interface WishedJob {
  readonly delayMs: number;
  readonly ttlMs: number;
  readonly priority: number;
  /** As the client sent it; null without one. */
  readonly idempotencyKey: string | null;
}

const DELAY = 'X-Banana-Job-Delay-Seconds';
const TTL = 'X-Banana-Job-TTL-Seconds';
const PRIORITY = 'X-Banana-Job-Priority';
const KEY = 'Idempotency-Key';

/** A month: no client waits longer for its job. */
const MAX_SECONDS = 30 * 24 * 3600;
const USUAL_TTL_SECONDS = 24 * 3600;
const MOST_URGENT = 9;
const MAX_KEY_CHARS = 255;

/** @throws SERVE_BAD_REQUEST if a wish is out of range */
export function wishedJob(headers: IncomingHttpHeaders): WishedJob {
  const ofTtl = `a number of seconds from above 0 to ${MAX_SECONDS}`;
  const delay = numberIn(
    headers,
    DELAY,
    SECONDS,
    MAX_SECONDS,
    `a number of seconds from 0 to ${MAX_SECONDS}`,
  );
  const ttl = numberIn(headers, TTL, SECONDS, MAX_SECONDS, ofTtl) ?? USUAL_TTL_SECONDS;
  if (ttl === 0) throw wrong(TTL, ofTtl);
  const ofPriority = `a whole number from 0 to ${MOST_URGENT}, the most urgent`;
  const priority = numberIn(headers, PRIORITY, /^\d$/, MOST_URGENT, ofPriority);
  return {
    delayMs: 1000 * (delay ?? 0),
    ttlMs: 1000 * ttl,
    priority: priority ?? 0,
    idempotencyKey: keyIn(headers),
  };
}

const SECONDS = /^\d+(?:\.\d+)?$/;

/** Null without the header. `says`: what it must be. */
function numberIn(
  headers: IncomingHttpHeaders,
  name: string,
  form: RegExp,
  max: number,
  says: string,
): number | null {
  const given = headers[name.toLowerCase()];
  if (given === undefined) return null;
  const value = typeof given === 'string' && form.test(given) ? Number(given) : NaN;
  if (value <= max) return value;
  throw wrong(name, says);
}

function keyIn(headers: IncomingHttpHeaders): string | null {
  const key = headers[KEY.toLowerCase()];
  if (key === undefined) return null;
  if (typeof key === 'string' && key !== '' && key.length <= MAX_KEY_CHARS) return key;
  throw wrong(KEY, `a text of 1 to ${MAX_KEY_CHARS} characters`);
}

function wrong(name: string, says: string): ServeError {
  return new ServeError('SERVE_BAD_REQUEST', `${name} must be ${says}.`);
}

/**
 * Returns the key in the scope of its route and caller, which is the API key used; without keys all callers are one. Names
 * no secret: both parts are digests. `keyInBody`: the API key in the body; null if it has none.
 */
export async function idempotencyKey(
  { backend, request, headerNames }: RequestContext,
  key: string,
  { model, route, contentType }: Pick<CallMessage, 'model' | 'route' | 'contentType'>,
  pieces: readonly Buffer[],
  keyInBody: string | null,
): Promise<IdempotencyKey> {
  const used = keyOf(request.headers, headerNames.keys) ?? keyInBody;
  const caller = backend.keys.required ? used : null;
  const scope = createHash('sha256')
    .update(JSON.stringify([key, model, route, caller]))
    .digest('base64url');
  return { scope, content: await inSlices(digestOf(contentType, pieces)) };
}

/** Returns the key of an id that a client has chosen, whoever and for whatever route: a job has its id for all. */
export async function keyOfId(
  id: string,
  { contentType }: Pick<CallMessage, 'contentType'>,
  pieces: readonly Buffer[],
): Promise<IdempotencyKey> {
  return { scope: id, content: await inSlices(digestOf(contentType, pieces)) };
}

/** A slice takes less than a millisecond. */
const SLICE_BYTES = 512 * 1024;

function* digestOf(contentType: string, pieces: readonly Buffer[]): Generator<void, string> {
  const hash = createHash('sha256').update(`${contentType}\n`);
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      hash.update(piece.subarray(at, at + SLICE_BYTES));
      if (piece.length > SLICE_BYTES) yield;
    }
  }
  return hash.digest('base64url');
}
