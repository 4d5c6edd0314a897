/** Gives each request its id: the client's if it is safe, else a new one. */
import type { IncomingHttpHeaders } from 'node:http';
import { newRequestId } from '../../dispatch/request-id.js';

/** An id that matches can be written to a header, a log line or a file name unchanged. */
const SAFE = /^[\w.:@/+=-]{1,128}$/;

/**
 * Returns the request's id. `names`: further headers in which its client may send one, in lower case; `X-Request-Id`
 * takes precedence. `inBody`: the id in the body, in dialects that have one.
 */
export function requestIdOf(
  headers: IncomingHttpHeaders,
  names: readonly string[] = [],
  inBody?: string | null,
): string {
  return safeId(headers['x-request-id']) ?? firstId(headers, names) ?? safeId(inBody) ?? newRequestId();
}

/** Returns the first safe id in these headers; null if there is none. */
export function firstId(headers: IncomingHttpHeaders, names: readonly string[]): string | null {
  for (const name of names) {
    const id = safeId(headers[name]);
    if (id !== null) return id;
  }
  return null;
}

/** Returns the id if it is safe in a header, a log line and a file name; else null. */
export function safeId(id: string | string[] | null | undefined): string | null {
  return typeof id === 'string' && SAFE.test(id) ? id : null;
}
