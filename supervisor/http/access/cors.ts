/**
 * Cross-origin resource sharing (the Fetch standard): decides which pages may read our replies in a browser.
 *
 * 1. `mark` runs before anything else and sets the headers on the response itself, so that every reply has them. A
 *    header that an app sets itself replaces ours.
 * 2. A preflight is answered (`answerPreflight`) whatever the path and without a key: browsers send none with it. Its answer lists
 *    only what a page may try: the methods of the path, as its dialect gives them, or those that the operator has
 *    configured.
 *
 * Cookies are never allowed: a key is sent in a header that only the page itself can set.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AllowedOrigins } from '../../options/value-forms.js';
import { ServeError } from '../../../protocol/errors.js';

export class Cors {
  /** Null if pages of every origin may call. */
  readonly #origins: ReadonlySet<string> | null;
  readonly #exposed: string;

  /** `exposed`: the headers of an answer that a page may read. */
  constructor(allowed: AllowedOrigins, exposed: string) {
    this.#exposed = exposed;
    this.#origins = allowed === '*' ? null : new Set(allowed);
  }

  mark({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
    if (this.#origins !== null) {
      response.setHeader('Vary', 'Origin'); // also for origins that are not allowed: a cache must not give that answer to others
      if (origin === undefined || !this.#origins.has(origin)) return;
    }
    response.setHeader('Access-Control-Allow-Origin', this.#origins === null ? '*' : (origin as string));
    response.setHeader('Access-Control-Expose-Headers', this.#exposed);
  }
}

/**
 * Whether this is a preflight, which a browser sends before a page's request; any other OPTIONS is an ordinary request.
 */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

/**
 * Returns SERVE_ORIGIN_REFUSED for a page of another origin, unless `allowed` has it; else null. Any page may make a browser
 * send a POST to any server that the browser reaches, and open WebSockets. Browsers say so in `Origin`, and most also in
 * `Sec-Fetch-Site`, which Chromium sends neither with a WebSocket's handshake nor to plain http on another machine.
 *
 * This does not see DNS rebinding: such a page's `Origin` and `Host` are alike.
 */
export function pageMistake(
  { headers }: Pick<IncomingMessage, 'headers'>,
  allowed: AllowedOrigins | null,
): ServeError | null {
  const { origin, host = '' } = headers;
  const site = headers['sec-fetch-site'];
  if (origin === undefined && site !== 'cross-site') return null; // nearly every request
  if (allowed === '*' || (origin !== undefined && allowed?.includes(origin) === true)) return null;
  if (site === 'same-origin' || (site !== 'cross-site' && isSamePlace(origin ?? '', host))) return null;
  return new ServeError('SERVE_ORIGIN_REFUSED', messageFor(origin, host));
}

const ORIGIN = /^(https?):\/\/([^/,]+)$/i;
const PORT = /:(\d*)$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/** Whether host and port of the origin are those of `Host`. A port that is missing is the default of the origin's scheme. */
function isSamePlace(origin: string, host: string): boolean {
  const [, scheme = '', place = ''] = ORIGIN.exec(origin) ?? [];
  return place !== '' && withPort(place, scheme) === withPort(host, scheme);
}

function withPort(place: string, scheme: string): string {
  const port = PORT.exec(place)?.[1] ?? '';
  const name = place.replace(PORT, '').toLowerCase();
  return `${name}:${port === '' ? DEFAULT_PORTS[scheme.toLowerCase()] : port}`;
}

function messageFor(origin: string | undefined, host: string): string {
  const pages = origin === undefined ? 'Pages of other sites' : `Pages of ${shortened(origin)}`;
  const refusal = `${pages} may not call this server: --cors-origin does not list their origin.`;
  const place = ORIGIN.exec(origin ?? '')?.[2];
  if (place === undefined) return refusal;
  return `${refusal} If this is the address of a proxy before this server, the proxy must pass on the Host ${shortened(place)}; it sent ${shortened(host)}.`;
}

/** Longest origin and host in a message; a browser's are shorter. */
const MAX_SHOWN = 256;

function shortened(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
