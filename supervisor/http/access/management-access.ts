/**
 * Decides which requests may manage models over HTTP: those with the key. If no key is configured, every client that
 * can reach the listener, except pages in a browser on this machine: any page can send a POST to 127.0.0.1, in its own
 * name or in that of a host whose address it has changed (DNS rebinding).
 */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import { isThisMachine } from '../../options/address.js';
import type { ServerOptions } from '../../options/resolve.js';
import type { AllowedOrigins } from '../../options/value-forms.js';
import { keyOf, type ApiKeys } from './api-keys.js';
import type { ClientHeaderNames } from './client-headers.js';

export interface ManagementAccess {
  readonly keys: ApiKeys;
  /** The host that requests must name, besides the names of this machine; null if any name is accepted. */
  readonly host: string | null;
}

/**
 * Returns SERVE_UNAUTHORIZED if the request lacks a valid key; SERVE_ORIGIN_REFUSED for a page, if no key is needed;
 * else null.
 */
export function managementMistake(
  { request, headerNames }: { readonly request: IncomingMessage; readonly headerNames: ClientHeaderNames },
  { keys, host }: ManagementAccess,
  allowed: AllowedOrigins | null,
): ServeError | null {
  if (keys.required)
    return keys.allows(keyOf(request.headers, headerNames.keys))
      ? null
      : new ServeError('SERVE_UNAUTHORIZED');
  return originMistake(request, allowed) ?? nameMistake(request, host);
}

/** `--cors-origin *` allows calls, never management. */
function originMistake(
  { headers: { origin } }: IncomingMessage,
  allowed: AllowedOrigins | null,
): ServeError | null {
  if (origin === undefined || (allowed !== null && allowed !== '*' && allowed.includes(origin))) return null;
  return refused(`Pages of ${origin} may not manage models: --cors-origin does not list this origin.`);
}

/**
 * Returns SERVE_ORIGIN_REFUSED for a page that reads the metrics of this machine under a name whose address it has
 * changed (DNS rebinding). Metrics need no key; on an address other than this machine's own they may be read under any
 * name.
 */
export function metricsMistake(
  request: IncomingMessage,
  { metricsHost, metricsPort }: Pick<ServerOptions, 'metricsHost' | 'metricsPort'>,
): ServeError | null {
  if (typeof metricsPort !== 'number' || !isThisMachine(metricsHost) || isOwnName(request, metricsHost))
    return null;
  return refused(
    'The Host header is not a name of this machine, such as localhost; on this address, metrics are served under such names only.',
  );
}

function nameMistake(request: IncomingMessage, own: string | null): ServeError | null {
  if (own === null || isOwnName(request, own)) return null;
  const { host = '' } = request.headers;
  return refused(
    `${host.replace(/:\d*$/, '').toLowerCase()} is not an address of the management API; without a key it answers only under its own address.`,
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
