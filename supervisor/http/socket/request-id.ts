/** Names each request: by the client's id if that is sane, else by a new one. */
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** An id that matches may stand in a header, a log line and a file name as it is. */
const SANE = /^[\w.:@/+=-]{1,128}$/;

/** Random bytes are fetched for many ids at once: one call per id costs 1 us more. */
const ID_BYTES = 16;
const BATCH_IDS = 256;
let pool = '';
let used = 0;

/** Returns the request's id. `inBody` is the id that the body gives it, in dialects that have one; headers count first. */
export function requestIdOf(headers: IncomingHttpHeaders, inBody?: string | null): string {
  return (
    sane(headers['x-request-id']) ?? sane(headers['x-banana-request-id']) ?? sane(inBody) ?? newRequestId()
  );
}

/** Banana's clients look for their id under the name they sent it by. */
export function bananaIdHeader({ headers }: IncomingMessage): Record<string, string> {
  const id = bananaId(headers);
  return id === null ? NO_HEADER : { 'X-Banana-Request-Id': id };
}

/** The id that Banana's clients give a call, the same for every retry of it; null if there is no sane one. */
export function bananaId(headers: IncomingHttpHeaders): string | null {
  return sane(headers['x-banana-request-id']);
}

const NO_HEADER = {};

function sane(id: string | string[] | null | undefined): string | null {
  return typeof id === 'string' && SANE.test(id) ? id : null;
}

function newRequestId(): string {
  if (used === pool.length) {
    pool = randomBytes(ID_BYTES * BATCH_IDS).toString('hex');
    used = 0;
  }
  const id = pool.slice(used, used + 2 * ID_BYTES);
  used += 2 * ID_BYTES;
  return id;
}
