/** The errors of this server with which a call may end, in every dialect. */
import { ServeError, type ErrorCode, type ErrorKind } from '../../../protocol/errors.js';

function failure(code: ErrorCode, kind: ErrorKind = ''): ServeError {
  return new ServeError(code, undefined, { kind });
}

export const CALL_FAILURES: readonly ServeError[] = [
  failure('SERVE_BAD_REQUEST'),
  failure('SERVE_BAD_BODY'),
  failure('SERVE_ORIGIN_REFUSED'),
  failure('SERVE_NOT_FOUND'),
  failure('SERVE_MODEL_NOT_FOUND'),
  failure('SERVE_REQUEST_TIMEOUT'),
  failure('SERVE_BODY_TOO_LARGE'),
  failure('SERVE_UNSUPPORTED_CODING'),
  failure('SERVE_INFERENCE_FAILED'),
  failure('SERVE_INFERENCE_FAILED', 'prediction'),
  failure('SERVE_INFERENCE_FAILED', 'out-of-memory'),
  failure('SERVE_OUTPUT_INVALID'),
  failure('SERVE_OUTPUT_TOO_LARGE'),
  failure('SERVE_WORKER_LOST'),
  failure('SERVE_WORKER_LOST', 'out-of-memory'),
  failure('SERVE_INTERNAL'),
  failure('SERVE_QUEUE_FULL'),
  failure('SERVE_OVERLOADED'),
  failure('SERVE_NOT_READY'),
  failure('SERVE_SHUTTING_DOWN'),
  failure('SERVE_NOT_BEGUN'),
  failure('SERVE_NOT_KEPT'),
  failure('SERVE_KEY_CONFLICT'),
  failure('SERVE_QUEUE_TIMEOUT'),
  failure('SERVE_DEADLINE'),
  failure('SERVE_INFERENCE_TIMEOUT'),
];

export const NO_MODEL: readonly ServeError[] = [failure('SERVE_MODEL_NOT_FOUND')];

/** The errors of a WebSocket's handshake. */
export const HANDSHAKE_FAILURES: readonly ServeError[] = [
  failure('SERVE_ORIGIN_REFUSED'),
  failure('SERVE_NOT_FOUND'),
  failure('SERVE_UPGRADE_REQUIRED'),
  failure('SERVE_QUEUE_FULL'),
  failure('SERVE_NOT_READY'),
  failure('SERVE_SHUTTING_DOWN'),
];
