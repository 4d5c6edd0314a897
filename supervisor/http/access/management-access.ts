/**
 * Who may manage models over HTTP: whoever has the key. Without one, whoever reaches the listener, but no page in a browser
 * of this machine: any page may send a POST to 127.0.0.1, in its own name, or in that of a host whose address it changed.
 */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import { isThisMachine } from '../../options/address.js';
import type { ServerOptions } from '../../options/resolve.js';
import type { AllowedOrigins } from '../../options/cors-origin.js';
import { keyOf, type ApiKeys } from './api-keys.js';
import type { ClientHeaderNames } from './client-headers.js';

export interface ManagementAccess {
  readonly keys: ApiKeys;
  /** The address that requests are for, besides the names of this machine; null: it may have any name. */
  readonly host: string | null;
}

interface ManagementRequest {
  readonly request: IncomingMessage;
  readonly headerNames: ClientHeaderNames;
}

/** SERVE_UNAUTHORIZED without a key that is known; SERVE_ORIGIN_REFUSED for a page, if none is needed; else null. */
export function managementMistake(
  { request, headerNames }: ManagementRequest,
  { keys, host }: ManagementAccess,
  allowed: AllowedOrigins | null,
): ServeError | null {
  if (keys.required)
    return keys.allows(keyOf(request.headers, headerNames.keys)) ? null : new ServeError('SERVE_UNAUTHORIZED');
  return originMistake(request, allowed) ?? nameMistake(request, host);
}

/** That every page may call says nothing of who may manage. */
function originMistake(
  { headers: { origin } }: IncomingMessage,
  allowed: AllowedOrigins | null,
): ServeError | null {
  if (origin === undefined || (allowed !== null && allowed !== '*' && allowed.includes(origin))) return null;
  return refused(`Pages of ${origin} may not manage models: --cors-origin does not name them.`);
}

/**
 * SERVE_ORIGIN_REFUSED for a page that reads the metrics of this machine under a name whose address it has changed. They
 * need no key; on another address, whoever reaches it may read them by any name.
 */
export function metricsMistake(
  request: IncomingMessage,
  { metricsHost, metricsPort }: Pick<ServerOptions, 'metricsHost' | 'metricsPort'>,
): ServeError | null {
  if (typeof metricsPort !== 'number' || !isThisMachine(metricsHost) || isOwnName(request, metricsHost))
    return null;
  return refused('Metrics on this machine are asked for by its own names, such as localhost.');
}

function nameMistake(request: IncomingMessage, own: string | null): ServeError | null {
  if (own === null || isOwnName(request, own)) return null;
  const { host = '' } = request.headers;
  return refused(
    `${host.replace(/:\d*$/, '').toLowerCase()} is not the address of the management API, which answers other names only with a key.`,
  );
}

function isOwnName({ headers }: IncomingMessage, own: string): boolean {
  const name = headers.host?.replace(/:\d*$/, '').toLowerCase();
  if (name === undefined || isThisMachine(name)) return true;
  return name === own.toLowerCase() || name === `[${own.toLowerCase()}]`;
}

function refused(message: string): ServeError {
  return new ServeError('SERVE_ORIGIN_REFUSED', message);
}
