/** Names each request: by the client's id if that is sane, else by a new one. */
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** An id that matches may stand in a header, a log line and a file name as it is. */
const SANE = /^[\w.:@/+=-]{1,128}$/;

/** Random bytes are fetched for many ids at once: one call per id costs 1 us more. */
const ID_BYTES = 16;
const BATCH_IDS = 256;
let pool = '';
let used = 0;

/**
 * Returns the request's id. `names`: the headers in which its client may have sent one, in lower case, besides
 * `X-Request-Id`, which counts first. `inBody` is the id that the body gives it, in dialects that have one.
 */
export function requestIdOf(
  headers: IncomingHttpHeaders,
  names: readonly string[] = [],
  inBody?: string | null,
): string {
  return saneId(headers['x-request-id']) ?? firstId(headers, names) ?? saneId(inBody) ?? newRequestId();
}

/** The first sane id in one of these headers; null if none has one. */
export function firstId(headers: IncomingHttpHeaders, names: readonly string[]): string | null {
  for (const name of names) {
    const id = saneId(headers[name]);
    if (id !== null) return id;
  }
  return null;
}

/** Null unless it may stand in a header, a log line and a file name as it is. */
export function saneId(id: string | string[] | null | undefined): string | null {
  return typeof id === 'string' && SANE.test(id) ? id : null;
}

/** An id that nothing else has. */
export function newRequestId(): string {
  if (used === pool.length) {
    pool = randomBytes(ID_BYTES * BATCH_IDS).toString('hex');
    used = 0;
  }
  const id = pool.slice(used, used + 2 * ID_BYTES);
  used += 2 * ID_BYTES;
  return id;
}
