/** Checks what every request must bring before anything else is asked of it: a Host, and a key. */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import { HEALTH_PATHS } from '../../../protocol/reserved-paths.js';
import { keyOf } from '../call/api-keys.js';
import { isPreflight } from '../call/cors.js';
import type { Backend } from '../call/backend.js';
import { gatewayOperation } from './gateway/gateway.js';

/**
 * SERVE_BAD_REQUEST unless the request has one `Host` that can be one, SERVE_UNAUTHORIZED without a key where one is
 * needed: before anything is read of the body, and whatever the path, so who has no key does not learn which there are.
 */
export function gateMistake(backend: Backend, request: IncomingMessage, path: string): ServeError | null {
  const hostProblem = hostProblemOf(request);
  if (hostProblem !== null) return new ServeError('SERVE_BAD_REQUEST', hostProblem);
  if (!backend.keys.required || findsKeyItself(backend, request, path)) return null;
  return backend.keys.allows(keyOf(request.headers)) ? null : new ServeError('SERVE_UNAUTHORIZED');
}

/** Whether the request needs no key, or may have it elsewhere than in its headers. */
function findsKeyItself(backend: Backend, request: IncomingMessage, path: string): boolean {
  const isAsked = backend.options.corsOrigin !== null && isPreflight(request); // a browser sends no key with it
  return isAsked || isHealthCheck(request, path) || gatewayOperation(backend, request, path) !== null;
}

/** Probes have no key and need none. */
function isHealthCheck({ method }: IncomingMessage, path: string): boolean {
  return (method === 'GET' || method === 'HEAD') && HEALTH_PATHS.has(path);
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
