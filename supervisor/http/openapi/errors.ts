/** The errors of this server in the document: which of them a call may end with, and how replies to them are described. */
import { ERRORS, ServeError, type ErrorCode, type ErrorKind } from '../../../protocol/errors.js';
import { TEXT, objectOf } from './schemas.js';

function failures(...rows: readonly (readonly [code: ErrorCode, kind?: ErrorKind])[]): readonly ServeError[] {
  return rows.map(([code, kind = '']) => new ServeError(code, undefined, { kind }));
}

/** The errors with which a call may end, in every dialect. */
export const CALL_FAILURES = failures(
  ['SERVE_BAD_REQUEST'],
  ['SERVE_BAD_BODY'],
  ['SERVE_ORIGIN_REFUSED'],
  ['SERVE_NOT_FOUND'],
  ['SERVE_MODEL_NOT_FOUND'],
  ['SERVE_REQUEST_TIMEOUT'],
  ['SERVE_BODY_TOO_LARGE'],
  ['SERVE_UNSUPPORTED_CODING'],
  ['SERVE_INFERENCE_FAILED'],
  ['SERVE_INFERENCE_FAILED', 'prediction'],
  ['SERVE_INFERENCE_FAILED', 'out-of-memory'],
  ['SERVE_INPUT_INVALID'],
  ['SERVE_OUTPUT_INVALID'],
  ['SERVE_OUTPUT_TOO_LARGE'],
  ['SERVE_WORKER_LOST'],
  ['SERVE_WORKER_LOST', 'out-of-memory'],
  ['SERVE_INTERNAL'],
  ['SERVE_QUEUE_FULL'],
  ['SERVE_OVERLOADED'],
  ['SERVE_NOT_READY'],
  ['SERVE_SHUTTING_DOWN'],
  ['SERVE_NOT_BEGUN'],
  ['SERVE_NOT_KEPT'],
  ['SERVE_KEY_CONFLICT'],
  ['SERVE_QUEUE_TIMEOUT'],
  ['SERVE_DEADLINE'],
  ['SERVE_INFERENCE_TIMEOUT'],
);

/** The errors of a WebSocket's handshake. */
export const HANDSHAKE_FAILURES = failures(
  ['SERVE_ORIGIN_REFUSED'],
  ['SERVE_NOT_FOUND'],
  ['SERVE_UPGRADE_REQUIRED'],
  ['SERVE_QUEUE_FULL'],
  ['SERVE_NOT_READY'],
  ['SERVE_SHUTTING_DOWN'],
);

export const NO_MODEL = failures(['SERVE_MODEL_NOT_FOUND']);

/** A schema that the document has once, under this name. */
export interface NamedSchema {
  /** Unique among all schemas of a document that differ. */
  readonly name: string;
  readonly schema: object;
}

/** The codes that clients receive. */
const CODES = Object.entries(ERRORS).flatMap(([code, { status }]) => (status === null ? [] : [code]));

const ISSUE = objectOf({
  path: { type: 'array', items: { anyOf: [TEXT, { type: 'integer' }] } },
  message: TEXT,
});

const ERROR_FIELDS = {
  code: { ...TEXT, enum: CODES },
  message: TEXT,
  requestId: TEXT,
  source: { ...TEXT, enum: [...new Set(Object.values(ERRORS).map(({ source }) => source))] },
  begun: { type: 'boolean' },
  issues: { type: 'array', items: ISSUE },
} as const;

/** The body of the house's errors (`answer/house-error.ts`). */
export const HOUSE_ERROR: NamedSchema = {
  name: 'Error',
  schema: objectOf({ error: objectOf(ERROR_FIELDS, ['code', 'message', 'requestId', 'source', 'begun']) }),
};

/** The body of errors of one field (`textFailure`). */
export const TEXT_ERROR: NamedSchema = { name: 'OpenInferenceError', schema: objectOf({ error: TEXT }) };
