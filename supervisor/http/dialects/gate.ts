/** What every request must bring before anything else is asked of it. */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import { keyOf } from '../call/api-keys.js';
import { HEALTH_PATHS } from './own-paths.js';
import { isPreflight } from '../call/cors.js';
import type { Backend } from '../call/backend.js';
import { gatewayOperation } from './gateway/gateway.js';

/**
 * SERVE_BAD_REQUEST without a `Host` (RFC 9112 section 3.2), SERVE_UNAUTHORIZED without a key where one is needed:
 * before anything is read of the body, and whatever the path, so who has no key does not learn which there are.
 */
export function gateMistake(backend: Backend, request: IncomingMessage, path: string): ServeError | null {
  if (request.headers.host === undefined && request.httpVersion === '1.1') {
    return new ServeError('SERVE_BAD_REQUEST', 'The request has no Host header.');
  }
  if (!backend.keys.required || findsKeyItself(backend, request, path)) return null;
  return backend.keys.allows(keyOf(request.headers)) ? null : new ServeError('SERVE_UNAUTHORIZED');
}

/** Needs no key, or may have it elsewhere than in its headers. */
function findsKeyItself(backend: Backend, request: IncomingMessage, path: string): boolean {
  const isAsked = backend.options.corsOrigin !== null && isPreflight(request); // a browser sends no key with it
  return isAsked || isHealthCheck(request, path) || gatewayOperation(backend, request, path) !== null;
}

function isHealthCheck({ method }: IncomingMessage, path: string): boolean {
  return (method === 'GET' || method === 'HEAD') && HEALTH_PATHS.has(path);
}
