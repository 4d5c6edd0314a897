/** How an error looks in the house dialect, and in whatever speaks like it. */
import { ERRORS, type ServeError } from '../../../protocol/errors.js';
import { SUPPORTED_CODINGS } from '../socket/decode-body.js';
import { httpStatus } from '../socket/http-status.js';
import type { Failure } from '../socket/refuse.js';
import type { RequestContext } from '../request/request-context.js';

/** `context` is null for what the HTTP parser has refused. */
export function houseFailure(error: ServeError, requestId: string, context: RequestContext | null): Failure {
  const isExposed =
    error.code === 'SERVE_INFERENCE_FAILED' &&
    error.detail !== '' &&
    context?.backend.options.exposeErrors === true;
  return {
    status: statusOf(error),
    headers: {
      'Content-Type': isExposed ? 'text/plain; charset=utf-8' : 'application/json',
      ...headersOfStatus(error),
    },
    body: isExposed ? Buffer.from(error.detail) : errorBody(error, requestId),
  };
}

/** The status that comes with a prediction's failure is for the clients of Multi Model Server's paths. */
function statusOf({ status, kind, code }: ServeError): number {
  return status === 0 || kind === 'prediction' ? httpStatus(code) : status;
}

/** The house's one shape of an error body; webhooks tell of failures in it too. */
export function errorBody({ code, message }: ServeError, requestId: string): Buffer {
  return Buffer.from(JSON.stringify({ error: { code, message, requestId, source: ERRORS[code].source } }));
}

/** The headers that HTTP wants beside the status of an error. */
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
