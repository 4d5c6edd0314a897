/** Maps each error code to its HTTP status in the house dialect. None is 429 or 502: common clients hide those. */
import type { ErrorCode } from '../../../protocol/errors.js';

/** `null`: no client gets this code; it ends a worker or the server. */
export const HTTP_STATUS = {
  SERVE_BAD_REQUEST: 400,
  SERVE_BAD_BODY: 400,
  SERVE_ARCHIVE_INVALID: 400,
  SERVE_DOWNLOAD_FAILED: 400,
  SERVE_UNAUTHORIZED: 401,
  SERVE_ORIGIN_REFUSED: 403,
  SERVE_FORBIDDEN: 403,
  SERVE_NOT_FOUND: 404,
  SERVE_MODEL_NOT_FOUND: 404,
  SERVE_VERSION_NOT_FOUND: 404,
  SERVE_METHOD_NOT_ALLOWED: 405,
  SERVE_REQUEST_TIMEOUT: 408,
  SERVE_MODEL_CONFLICT: 409,
  SERVE_JOB_CANCELLED: 409,
  SERVE_JOB_ENDED: 409,
  SERVE_RESULT_DROPPED: 410,
  SERVE_KEY_CONFLICT: 422,
  SERVE_BODY_TOO_LARGE: 413,
  SERVE_UNSUPPORTED_CODING: 415,
  SERVE_UPGRADE_REQUIRED: 426,
  SERVE_HEADERS_TOO_LARGE: 431,
  SERVE_QUEUE_FULL: 503,
  SERVE_OVERLOADED: 503,
  SERVE_NOT_READY: 503,
  SERVE_SHUTTING_DOWN: 503,
  SERVE_NOT_BEGUN: 503,
  SERVE_NOT_KEPT: 503,
  SERVE_JOBS_UNAVAILABLE: 503,
  SERVE_QUEUE_TIMEOUT: 504,
  SERVE_DEADLINE: 504,
  SERVE_JOB_EXPIRED: 504,
  SERVE_INFERENCE_FAILED: 500,
  SERVE_HTTP_ERROR: 500, // if the worker sent none; an app always chooses one
  SERVE_OUTPUT_INVALID: 500,
  SERVE_OUTPUT_TOO_LARGE: 500,
  SERVE_INFERENCE_TIMEOUT: 504,
  SERVE_WORKER_LOST: 500,
  SERVE_INTERNAL: 500,
  SERVE_SLOW_READER: null,
  SERVE_CANCELLED: null,
  SERVE_PROTOCOL: null, // that worker's callers get SERVE_WORKER_LOST
  SERVE_APP_INVALID: null,
  SERVE_INIT_FAILED: null,
  SERVE_INIT_TIMEOUT: null,
  SERVE_CRASH_LOOP: null,
  SERVE_CONFIG: null,
} as const satisfies Record<ErrorCode, number | null>;

/** The status that a client receives; 500 for codes that are not meant for clients. */
export function httpStatus(code: ErrorCode): number {
  return HTTP_STATUS[code] ?? 500;
}
