/**
 * The form of every reply on the paths of Multi Model Server: its JSON, its headers, its errors, and whether it ends its
 * connection. One table over all codes maps our errors to status, exception class and message; where a code is not enough,
 * the error's kind or the status that the app chose decides.
 */
import { ERRORS, type ErrorCode, type ErrorKind, type ServeError } from '../../../../protocol/errors.js';
import type { ServerOptions } from '../../../options/resolve.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import { exposedDetail, headersOfStatus } from '../../answer/house-error.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import type { RequestContext } from '../../request/request-context.js';
import type { Dialect, Failure } from '../dialect.js';
import { ERROR_BODY } from './describe.js';

const NO_CACHE = {
  Pragma: 'no-cache',
  'Cache-Control': 'no-cache; no-store, must-revalidate, private',
  Expires: 'Thu, 01 Jan 1970 00:00:00 UTC',
};

/** `maxBody`: the largest body, in bytes, that these paths accept. */
export function mmsStyleFor(
  maxBody: (options: ServerOptions) => number,
): Pick<Dialect, 'fail' | 'clientHeaders' | 'headers' | 'ownHeaders' | 'closes'> &
  Required<Pick<Dialect, 'errorBody'>> {
  return {
    // Keys are accepted in both headers here too, also on a listener without other dialects.
    clientHeaders: { key: BANANA_CLIENTS.clientHeaders.key },
    errorBody: ERROR_BODY,
    fail: (error, _requestId, context) =>
      mmsFailure(error, context, context === null ? 0 : maxBody(context.backend.options)),
    headers: () => NO_CACHE,
    ownHeaders: new Set(Object.keys(NO_CACHE).map((name) => name.toLowerCase())),
    closes: (status) => status >= 400,
  };
}

export const mmsStyle = mmsStyleFor(({ maxBody }) => maxBody);

/** `maxBody`: in bytes. */
function mmsFailure(error: ServeError, context: RequestContext | null, maxBody: number): Failure {
  const body = errorBody(error, context);
  const headers = { ...NO_CACHE, 'Content-Type': JSON_TYPE, ...headersOfStatus(error) };
  const ending =
    body.code === 413 && context !== null
      ? { readsOnBytes: bytesToRead(context, maxBody) }
      : { closes: true };
  return { status: body.code, headers, body: mmsJson(body), ...ending };
}

function errorBody(error: ServeError, context: RequestContext | null) {
  const row = rowOf(error);
  const isOfApp = row.status === EXCEPTION_STATUS && ERRORS[error.code].source === 'app';
  const status = isOfApp ? exceptionStatusOf(context) : row.status;
  const message = row.messageOf(error, context?.model?.spec.name ?? '');
  const exposed = row === ROWS.SERVE_INFERENCE_FAILED ? exposedDetail(error, context) : '';
  return {
    code: error.status === 0 ? status : error.status,
    type: row.type,
    message: exposed === '' ? message : `${message}: ${exposed}`,
  };
}

const EXCEPTION_STATUS = 503;

/** 503 is what that server answers for an exception of a handler. Clients repeat such calls, and a model has no handler. */
function exceptionStatusOf(context: RequestContext | null): number {
  if (context?.model?.spec.program.hasCode === false) return 500;
  return Number(context?.backend.options.mmsExceptionStatus ?? 503);
}

/**
 * Bytes of a too large body that are read so that the connection can be kept: twice the limit in all. Of a chunked
 * body, the limit has been read already.
 */
function bytesToRead({ request }: RequestContext, maxBody: number): number {
  return request.headers['content-length'] === undefined ? maxBody : 2 * maxBody;
}

const JSON_TYPE = 'application/json';

function mmsJson(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}

/** Answers with this value as Multi Model Server does: indented by two spaces, with one line feed at its end. Members that are undefined are left out. */
export function writeMmsJson(ctx: AnswerContext, status: number, value: object): void {
  ctx.status = status;
  ctx.set('Content-Type', JSON_TYPE); // `ctx.type` would add a charset
  ctx.body = mmsJson(value);
}

/** Status and exception class of an error, and its message for a client. `model`: the requested one; empty if unknown. */
interface Row {
  readonly status: number;
  readonly type: string;
  messageOf(error: ServeError, model: string): string;
}

type MessageOf = Row['messageOf'];

/** The error's own message, which is fit for a client. */
const own: MessageOf = ({ message }) => message;

/** Always MMS's message. */
const always = (text: string): MessageOf => {
  return () => text;
};

/** The error's own message; MMS's if the error only has the default message of its code. */
const ownOr = (text: string): MessageOf => {
  return ({ code, message }) => (message === ERRORS[code].message ? text : message);
};

/** The first wrong value of the input. */
const firstIssue: MessageOf = ({ message, issues: [first] }) => {
  if (first === undefined) return message;
  return first.path.length === 0 ? first.message : `${first.path.join('.')}: ${first.message}`;
};

/** MMS has one message for a full queue and for no worker; ours adds which of the two it is. */
const noWorker: MessageOf = ({ code, message }, model) => {
  const whose = model === '' ? '' : ` for model: ${model}`;
  const why = code === 'SERVE_QUEUE_FULL' ? 'Consider increasing job queue size.' : message;
  return `No worker is available to serve request${whose}. ${why}`;
};

const row = (status: number, type: string, messageOf: MessageOf = own): Row => ({ status, type, messageOf });

const INTERNAL = 'InternalServerException';
const BAD_REQUEST = 'BadRequestException';
const UNAVAILABLE = 'ServiceUnavailableException';
const TIMEOUT = 'RequestTimeoutException';

const INVALID_HTTP = 'Invalid HTTP message.';
const UNKNOWN_RESOURCE = 'Requested resource is not found, please refer to API document.';
const WRONG_METHOD = 'Requested method is not allowed, please refer to API document.';
const WRONG_KEY =
  'Token Authorization failed. Token either incorrect, expired, or not provided correctly. Send it as Authorization: Bearer {key}.';

const ROWS: Readonly<Record<ErrorCode, Row>> = {
  SERVE_BAD_REQUEST: row(400, BAD_REQUEST, ownOr(INVALID_HTTP)),
  SERVE_BAD_BODY: row(400, BAD_REQUEST),
  SERVE_UNAUTHORIZED: row(401, 'InvalidKeyException', always(WRONG_KEY)),
  SERVE_ORIGIN_REFUSED: row(403, 'ForbiddenException'),
  SERVE_NOT_FOUND: row(404, 'ResourceNotFoundException', ownOr(UNKNOWN_RESOURCE)),
  SERVE_MODEL_NOT_FOUND: row(404, 'ModelNotFoundException'),
  SERVE_VERSION_NOT_FOUND: row(404, 'ModelVersionNotFoundException'),
  SERVE_METHOD_NOT_ALLOWED: row(405, 'MethodNotAllowedException', always(WRONG_METHOD)),
  SERVE_REQUEST_TIMEOUT: row(408, TIMEOUT),
  SERVE_MODEL_CONFLICT: row(409, 'ConflictStatusException'),
  SERVE_ARCHIVE_INVALID: row(400, 'InvalidModelException'),
  SERVE_DOWNLOAD_FAILED: row(400, 'DownloadModelException'),
  SERVE_BODY_TOO_LARGE: row(413, 'RequestEntityTooLargeException'),
  SERVE_UNSUPPORTED_CODING: row(415, 'UnsupportedMediaTypeException'),
  SERVE_UPGRADE_REQUIRED: row(426, 'UpgradeRequiredException'),
  SERVE_HEADERS_TOO_LARGE: row(400, BAD_REQUEST, always(INVALID_HTTP)),
  SERVE_QUEUE_FULL: row(503, 'QueueFullException', noWorker),
  SERVE_OVERLOADED: row(503, UNAVAILABLE),
  SERVE_NOT_READY: row(503, UNAVAILABLE, noWorker),
  SERVE_SHUTTING_DOWN: row(503, UNAVAILABLE),
  SERVE_NOT_BEGUN: row(503, UNAVAILABLE),
  SERVE_NOT_KEPT: row(503, UNAVAILABLE),
  SERVE_JOBS_UNAVAILABLE: row(503, UNAVAILABLE),
  SERVE_KEY_CONFLICT: row(422, 'ConflictStatusException'),
  SERVE_QUEUE_TIMEOUT: row(504, TIMEOUT),
  SERVE_DEADLINE: row(504, TIMEOUT),
  SERVE_INFERENCE_FAILED: row(503, INTERNAL, always('Prediction failed')),
  SERVE_HTTP_ERROR: row(500, INTERNAL),
  SERVE_INPUT_INVALID: row(400, BAD_REQUEST, firstIssue),
  SERVE_OUTPUT_INVALID: row(503, INTERNAL, ownOr('Unsupported model output data type.')),
  SERVE_OUTPUT_TOO_LARGE: row(500, INTERNAL),
  SERVE_INFERENCE_TIMEOUT: row(504, INTERNAL),
  SERVE_WORKER_LOST: row(500, INTERNAL, always('Worker died.')),
  SERVE_INTERNAL: row(500, INTERNAL),
  SERVE_CONFIG: row(400, BAD_REQUEST),
  // No call ends with these, but a start that a client waits for may.
  SERVE_APP_INVALID: row(500, INTERNAL),
  SERVE_INIT_FAILED: row(500, INTERNAL),
  SERVE_INIT_TIMEOUT: row(500, INTERNAL),
  SERVE_CRASH_LOOP: row(500, INTERNAL),
  // About jobs, whose pages are not Multi Model Server's.
  SERVE_FORBIDDEN: row(403, 'ForbiddenException'),
  SERVE_JOB_EXPIRED: row(504, TIMEOUT),
  SERVE_JOB_CANCELLED: row(409, 'ConflictStatusException'),
  SERVE_JOB_ENDED: row(409, 'ConflictStatusException'),
  SERVE_RESULT_DROPPED: row(410, 'ResourceNotFoundException'),
  // Never sent to a client.
  SERVE_SLOW_READER: row(500, INTERNAL),
  SERVE_CANCELLED: row(500, INTERNAL),
  SERVE_PROTOCOL: row(500, INTERNAL),
};

/** Rows for errors of a code that also have this kind. */
const KINDS: Readonly<Partial<Record<ErrorCode, Readonly<Partial<Record<ErrorKind, Row>>>>>> = {
  SERVE_INFERENCE_FAILED: {
    prediction: row(500, INTERNAL),
    input: row(400, BAD_REQUEST),
    'out-of-memory': row(507, INTERNAL, always('Out of resources')),
  },
  // The handler set a header that cannot be sent.
  SERVE_OUTPUT_INVALID: { exception: row(503, INTERNAL, always('Prediction failed')) },
  SERVE_WORKER_LOST: { 'out-of-memory': row(507, INTERNAL, always('Worker died.')) },
};

/** The default version of a model cannot be unregistered while there are others. */
const DEFAULT_VERSION = row(403, 'InvalidModelVersionException');

function rowOf({ code, kind, status }: ServeError): Row {
  if (code === 'SERVE_MODEL_CONFLICT' && status === DEFAULT_VERSION.status) return DEFAULT_VERSION;
  return KINDS[code]?.[kind] ?? ROWS[code];
}
