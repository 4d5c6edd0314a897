/** Checks the Host header, the API key and the page of a request before anything else is done with it. */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import { keyOf } from '../access/api-keys.js';
import type { RequestContext } from '../request/request-context.js';
import { managementMistake, metricsMistake } from '../access/management-access.js';
import { pageMistake } from '../access/page-origin.js';

/** SERVE_BAD_REQUEST unless the request has exactly one `Host` header and that is valid; null if it has. */
export function hostMistake(request: IncomingMessage): ServeError | null {
  const problem = hostProblemOf(request);
  return problem === null ? null : new ServeError('SERVE_BAD_REQUEST', problem);
}

/**
 * SERVE_UNAUTHORIZED unless a header has a valid key or no key is needed; null then. The check comes before the body is
 * read and does not depend on the path, so that a client without a key does not learn which paths exist. For management
 * requests, and for every path on the management listener, `management-access.ts` decides.
 */
export function keyMistake(
  context: RequestContext,
  auth: 'none' | 'call' | 'management' | 'body',
): ServeError | null {
  const { backend, request, headerNames } = context;
  if (context.listener === 'metrics') return metricsMistake(request, backend.options);
  if (auth === 'none') return null;
  if (auth === 'management' || context.listener === 'management') {
    const mistake = managementMistake(context, backend.management, backend.options.corsOrigin);
    context.hasKey = mistake === null && backend.management.keys.required;
    return mistake;
  }
  if (auth === 'body' || !backend.keys.required) return null;
  context.hasKey = backend.keys.allows(keyOf(request.headers, headerNames.keys));
  return context.hasKey ? null : new ServeError('SERVE_UNAUTHORIZED');
}

/**
 * SERVE_ORIGIN_REFUSED if a page of another origin calls a server without keys, or opens a WebSocket there or where the
 * operator lists pages; else null. Management has its own rule.
 */
export function originMistake({
  backend,
  listener,
  request,
  counts,
  isWebSocket,
}: RequestContext): ServeError | null {
  if (listener !== 'main') return null;
  const { keys, options } = backend;
  const isChecked = isWebSocket ? !keys.required || options.corsOrigin !== null : counts && !keys.required;
  return isChecked ? pageMistake(request, options.corsOrigin) : null;
}

/** A name or address of RFC 3986 section 3.2.2, optionally with a port; an empty Host is valid too. */
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;

/** Returns why RFC 9112 section 3.2 requires a 400 for this Host, or null. HTTP/1.0 needs no Host. */
function hostProblemOf({ headers: { host }, httpVersion, rawHeaders }: IncomingMessage): string | null {
  if (host === undefined) return httpVersion === '1.1' ? 'The request has no Host header.' : null;
  if (!HOST.test(host)) return 'The Host header is not a valid host name or address.';
  return countHosts(rawHeaders) > 1 ? 'The request has more than one Host header.' : null;
}

/** Counts the Host headers; Node's `headers` has only the first one. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}
