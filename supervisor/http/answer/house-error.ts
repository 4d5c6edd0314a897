/** Formats errors as the house dialect does, which other dialects use too, and as a text. */
import { ERRORS, httpStatus, type ServeError } from '../../../protocol/errors.js';
import { isBananaClient } from '../access/client-headers.js';
import { SUPPORTED_CODINGS } from '../socket/receive-body.js';
import type { Failure } from '../socket/refuse.js';
import type { RequestContext } from '../request/request-context.js';

/** `context` is null for input that the HTTP parser refused. */
export function houseFailure(error: ServeError, requestId: string, context: RequestContext | null): Failure {
  const detail = exposedDetail(error, context);
  const status = statusOf(error);
  const isHidden = context !== null && isHiddenStatus(status, error, context);
  return {
    status: isHidden ? 500 : status,
    headers: {
      'Content-Type': detail === '' ? 'application/json' : 'text/plain; charset=utf-8',
      ...headersOfStatus(error),
    },
    body: detail === '' ? errorBody(error, requestId, isHidden ? { status } : {}) : Buffer.from(detail),
  };
}

/**
 * Whether the app refused a call of a Banana client with a status that this client does not report: it loses the body of
 * nearly all of them, and repeats the call for five minutes after 400 and 423.
 */
function isHiddenStatus(status: number, { code }: ServeError, { request }: RequestContext): boolean {
  const isOfApp = code === 'SERVE_HTTP_ERROR' || code === 'SERVE_INPUT_INVALID';
  return isOfApp && !REPORTED.has(status) && request.method === 'POST' && isBananaClient(request.headers);
}

/** The statuses of errors that a Banana client reports with their body, and 503, after which it tries again. */
const REPORTED: ReadonlySet<number> = new Set([401, 404, 413, 500, 503]);

/** Returns the stack of an app that threw, if the operator shows it with `--expose-errors`; otherwise an empty text. */
export function exposedDetail({ code, detail }: ServeError, context: RequestContext | null): string {
  const isExposed = code === 'SERVE_INFERENCE_FAILED' && context?.backend.options.exposeErrors === true;
  return isExposed ? detail : '';
}

/**
 * Returns the status that an app chose, otherwise that of the code. Ignores the status of a prediction error: only
 * Multi Model Server's paths answer with that.
 */
export function statusOf({ status, kind, code }: Pick<ServeError, 'status' | 'kind' | 'code'>): number {
  return status === 0 || kind === 'prediction' ? httpStatus(code) : status;
}

/** The JSON body of an error. `more`: facts that a client would find in the answer's head. */
export function errorBody(
  { code, message, issues, begun }: Pick<ServeError, 'code' | 'message' | 'issues' | 'begun'>,
  requestId: string,
  more: Readonly<Record<string, unknown>> = {},
): Buffer {
  const error = { code, message, requestId, source: ERRORS[code].source, begun, ...more };
  return Buffer.from(JSON.stringify({ error: issues.length === 0 ? error : { ...error, issues } }));
}

/** Headers that HTTP requires with the status of an error. */
export function headersOfStatus({ code, retryAfterS }: ServeError): Record<string, string | number> {
  const headers: Record<string, string | number> = {};
  if (retryAfterS !== undefined) headers['Retry-After'] = retryAfterS;
  if (code === 'SERVE_UNAUTHORIZED') headers['WWW-Authenticate'] = 'Bearer'; // RFC 9110 section 15.5.2
  if (code === 'SERVE_UNSUPPORTED_CODING') headers['Accept-Encoding'] = SUPPORTED_CODINGS; // RFC 9110 section 15.5.16
  if (code === 'SERVE_UPGRADE_REQUIRED') {
    headers['Upgrade'] = 'websocket'; // RFC 9110 section 15.5.22
    headers['Sec-WebSocket-Version'] = '13'; // RFC 6455 section 4.4
  }
  return headers;
}

/** An error of one field, `{"error": "..."}`, as KServe's protocols have them. The statuses are the house's, but for 422. */
export function textFailure(error: ServeError, context: RequestContext | null): Failure {
  const detail = exposedDetail(error, context);
  const text = detail === '' ? textOf(error) : `${error.message}\n${detail}`;
  return {
    status: error.code === 'SERVE_INPUT_INVALID' ? 400 : statusOf(error),
    headers: { 'Content-Type': 'application/json', ...headersOfStatus(error) },
    body: Buffer.from(JSON.stringify({ error: text })),
  };
}

/** The message with the wrong values of the input, for which there is no field, unless it has them already. */
function textOf({ code, message, issues }: ServeError): string {
  if (issues.length === 0 || code === 'SERVE_INPUT_INVALID') return message;
  const places = issues.map(({ path, message: problem }) => `${path.join('.')}: ${problem}`);
  return `${message} ${places.join('; ')}`;
}
