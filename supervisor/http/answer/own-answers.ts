/** Answers of the front's own: errors in the format of their dialect, bytes, and the headers that all answers have. */
import { httpStatus, type ServeError } from '../../../protocol/errors.js';
import type { RequestContext } from '../request/request-context.js';
import { refuse } from '../socket/refuse.js';
import { isLastRequest } from '../socket/request-facts.js';

interface ErrorFacts {
  /** Value of the Server-Timing header; absent if the request is not a call. */
  readonly timing?: string;
  /** Methods that the path takes, if the request has another one. */
  readonly allow?: string;
  /** Whether the connection is closed after this answer. */
  readonly close?: boolean;
}

/** Server-Timing of a call that was refused before it had a place in the queue. */
export const NO_TIME = 'queue;dur=0, run;dur=0';

/** Sends the error and returns its status. The body may still be arriving, and part of the answer may have been sent. */
export function answerError(context: RequestContext, error: ServeError, facts: ErrorFacts = {}): number {
  const { request, response, dialect, requestId } = context;
  const failure = dialect.fail(error, requestId, context);
  const headers = { ...failure.headers, ...retryHeaders(error), ...commonHeaders(context) };
  if (facts.timing !== undefined) headers['Server-Timing'] = facts.timing;
  if (facts.allow !== undefined) headers['Allow'] = facts.allow;
  // The rest of a request that was too slow would arrive as slowly.
  const closes =
    facts.close === true || error.code === 'SERVE_REQUEST_TIMEOUT' || headers['Connection'] !== undefined;
  refuse(request, response, failure, headers, closes);
  return failure.status;
}

/** Tells clients that repeat failed calls on their own whether this call may be repeated, and after how long. */
export function retryHeaders({ code, retryAfterMs }: ServeError): Record<string, string | number> {
  const mayRetry = httpStatus(code) === 503 ? code !== 'SERVE_NOT_KEPT' : code === 'SERVE_QUEUE_TIMEOUT';
  const headers = { 'X-Should-Retry': String(mayRetry) };
  return retryAfterMs === undefined ? headers : { ...headers, 'Retry-After-Ms': retryAfterMs };
}

/** Sends the error as the end of the request: it is logged, and counted if the request is a call. */
export function refuseRequest(context: RequestContext, error: ServeError, facts: ErrorFacts): void {
  const status = answerError(context, error, facts);
  context.backend.observer.refused(context, error, status);
}

/** Sends a whole answer, in one gathered write. */
export function sendPieces(
  context: RequestContext,
  status: number,
  headers: Readonly<Record<string, string>>,
  pieces: readonly Buffer[],
): void {
  const { response } = context;
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  response.writeHead(status, { ...commonHeaders(context), ...headers, 'Content-Length': bytes });
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
}

/** The headers that every answer to this request has. */
export function commonHeaders(context: RequestContext): Record<string, string> {
  const { backend, request, dialect, requestId } = context;
  return {
    'X-Request-Id': requestId,
    ...dialect.headers?.(context),
    ...(backend.end.isNear && isLastRequest(request) && { Connection: 'close' }),
  };
}

/** Answers a preflight for a path with these methods; call `mark` on the response first. */
export function answerPreflight(
  { backend, request, response, requestId }: RequestContext,
  methods: string,
): void {
  if (response.hasHeader('Access-Control-Allow-Origin')) {
    response.removeHeader('Access-Control-Expose-Headers'); // it has no meaning in the answer to a preflight
    const { corsMethods, corsHeaders } = backend.options;
    response.setHeader('Access-Control-Allow-Methods', corsMethods?.join(', ') ?? allowedMethods(methods));
    // All requested headers: an app may read any, and `*` would not include `Authorization`.
    const asked = corsHeaders?.join(', ') ?? request.headers['access-control-request-headers'];
    if (asked !== undefined) response.setHeader('Access-Control-Allow-Headers', asked);
    response.setHeader('Access-Control-Max-Age', MAX_AGE_S);
  }
  response.setHeader('X-Request-Id', requestId);
  if (backend.end.isNear && isLastRequest(request)) response.setHeader('Connection', 'close');
  response.writeHead(204).end();
}

/** A page may use these everywhere, preflight or not (the Fetch standard, section 4.8). */
const SAFE_METHODS = ['GET', 'HEAD', 'POST'];

function allowedMethods(methods: string): string {
  const others = methods.split(', ').filter((one) => one !== '' && one !== 'OPTIONS');
  return [...new Set([...SAFE_METHODS, ...others])].join(', ');
}

/** Browsers may cache a preflight this long: Chromium's own limit. */
const MAX_AGE_S = 7200;
