/**
 * Cross-origin resource sharing (the Fetch standard): which pages' browsers may show them our replies.
 *
 * 1. `mark` comes before anything else: what the headers are set on is the response itself, so that every reply has
 *    them, whoever writes it. A header that an app sets itself takes the place of ours.
 * 2. A preflight is answered here, whatever the path and without a key: browsers send none with it. It tells a page
 *    only what it may try: the methods of the path, as the dialect that claims it says them, or those of the operator.
 *
 * Cookies are never allowed for: a key is in a header that only the page itself can set.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AllowedOrigins } from '../../options/cors-origin.js';
import type { ServerOptions } from '../../options/resolve.js';

/** How long a browser may remember a preflight: Chromium's own limit. */
const MAX_AGE_S = 7200;

export class Cors {
  /** Null: every page may call. */
  readonly #origins: ReadonlySet<string> | null;
  readonly #exposed: string;

  /** `exposed`: the headers of an answer that a page may read. */
  constructor(allowed: AllowedOrigins, exposed: string) {
    this.#exposed = exposed;
    this.#origins = allowed === '*' ? null : new Set(allowed);
  }

  /** Whether this comes from a page that may call, or from no page at all. */
  allows({ headers: { origin } }: IncomingMessage): boolean {
    return this.#origins === null || origin === undefined || this.#origins.has(origin);
  }

  mark({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
    if (this.#origins !== null) {
      response.setHeader('Vary', 'Origin'); // also for those who get nothing: a cache must not hand that to others
      if (origin === undefined || !this.#origins.has(origin)) return;
    }
    response.setHeader('Access-Control-Allow-Origin', this.#origins === null ? '*' : (origin as string));
    response.setHeader('Access-Control-Expose-Headers', this.#exposed);
  }
}

/** Whether a browser asks for leave before a page's request; any other OPTIONS is a request like all. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

/** A preflight, and what its answer depends on. */
export interface Preflight {
  readonly backend: {
    readonly options: Pick<ServerOptions, 'corsMethods' | 'corsHeaders'>;
    closing(request: IncomingMessage): boolean;
  };
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
}

/** Answers a preflight of a path that takes these methods; `mark` must have seen the response before. */
export function answerPreflight({ backend, request, response, requestId }: Preflight, methods: string): void {
  if (response.hasHeader('Access-Control-Allow-Origin')) {
    response.removeHeader('Access-Control-Expose-Headers'); // it means nothing in a preflight's answer
    const { corsMethods, corsHeaders } = backend.options;
    response.setHeader('Access-Control-Allow-Methods', corsMethods?.join(', ') ?? allowedMethods(methods));
    // All headers that were asked for: an app may read any, and `*` would leave out `Authorization`.
    const asked = corsHeaders?.join(', ') ?? request.headers['access-control-request-headers'];
    if (asked !== undefined) response.setHeader('Access-Control-Allow-Headers', asked);
    response.setHeader('Access-Control-Max-Age', MAX_AGE_S);
  }
  response.setHeader('X-Request-Id', requestId);
  if (backend.closing(request)) response.setHeader('Connection', 'close');
  response.writeHead(204).end();
}

/** A page may try these everywhere, preflight or not (the Fetch standard, section 4.8). */
const SAFE_METHODS = ['GET', 'HEAD', 'POST'];

function allowedMethods(methods: string): string {
  const others = methods.split(', ').filter((one) => one !== '' && one !== 'OPTIONS');
  return [...new Set([...SAFE_METHODS, ...others])].join(', ');
}
