/** Checks what every request must bring before anything else is asked of it: a Host, and a key. */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import { keyOf } from '../access/api-keys.js';
import type { RequestContext } from '../request/request-context.js';
import { managementMistake, metricsMistake } from '../access/management-access.js';

/** SERVE_BAD_REQUEST unless the request has one `Host` that can be one; null if it has. */
export function hostMistake(request: IncomingMessage): ServeError | null {
  const problem = hostProblemOf(request);
  return problem === null ? null : new ServeError('SERVE_BAD_REQUEST', problem);
}

/**
 * SERVE_UNAUTHORIZED unless a header has a key that is known, or none is needed there: before anything is read of the
 * body, and whatever the path, so that a client without a key does not learn which there are. For the management API as
 * `management-access.ts` says, whatever the path on its own listener.
 */
export function keyMistake(
  context: RequestContext,
  auth: 'none' | 'call' | 'management' | 'body',
): ServeError | null {
  const { backend, request, headerNames } = context;
  if (context.listener === 'metrics') return metricsMistake(request, backend.options);
  if (auth === 'none') return null;
  if (auth === 'management' || context.listener === 'management')
    return managementMistake(context, backend.management, backend.options.corsOrigin);
  if (auth === 'body' || !backend.keys.required) return null;
  return backend.keys.allows(keyOf(request.headers, headerNames.keys))
    ? null
    : new ServeError('SERVE_UNAUTHORIZED');
}

/** Names and addresses as RFC 3986 section 3.2.2 has them, a port behind them or not; the empty one is valid too. */
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;

/** Says why RFC 9112 section 3.2 wants a 400 for this Host; null if it does not. HTTP/1.0 needs no Host. */
function hostProblemOf({ headers: { host }, httpVersion, rawHeaders }: IncomingMessage): string | null {
  if (host === undefined) return httpVersion === '1.1' ? 'The request has no Host header.' : null;
  if (!HOST.test(host)) return 'The Host header of the request is none: it must be a name or an address.';
  return countHosts(rawHeaders) > 1 ? 'The request has more than one Host header.' : null;
}

/** Counts the Host headers: Node's `headers` has the first one only. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}
