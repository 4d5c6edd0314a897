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
  issues: { type: 'array', items: ISSUE },
} as const;

/** The body of the house's errors (`answer/house-error.ts`). */
export const HOUSE_ERROR: NamedSchema = {
  name: 'Error',
  schema: objectOf({ error: objectOf(ERROR_FIELDS, ['code', 'message', 'requestId', 'source']) }),
};

/** The part of a dialect that decides the form of its errors. */
export interface ErrorStyle {
  /** The status of an error in this dialect. */
  statusOf(error: ServeError): number;
  /** The body of its errors; null if it is not described. */
  readonly errorBody: NamedSchema | null;
}

interface SharedReply {
  readonly errorBody: NamedSchema | null;
  /** The messages of all errors with this status. */
  readonly messages: Set<string>;
}

type Replies = Readonly<Record<string, object>>;

/** Describes the replies to errors: once for each status of a dialect, in the components of the document. */
export class ErrorReplies {
  readonly #shared = new Map<string, SharedReply>();
  /** The replies to lists that many operations have in common. */
  readonly #known = new Map<ErrorStyle, Map<readonly ServeError[], Replies>>();

  /** Returns references to the replies, by status. */
  repliesOf(failures: readonly ServeError[], style: ErrorStyle): Replies {
    const known = this.#known.get(style) ?? new Map<readonly ServeError[], Replies>();
    const replies = known.get(failures) ?? this.#share(failures, style);
    this.#known.set(style, known.set(failures, replies));
    return replies;
  }

  #share(failures: readonly ServeError[], style: ErrorStyle): Replies {
    const replies: Record<string, object> = {};
    for (const failure of failures) {
      const status = style.statusOf(failure);
      const name = `${style.errorBody?.name ?? 'Error'}${status}`;
      const shared = this.#shared.get(name) ?? { errorBody: style.errorBody, messages: new Set() };
      this.#shared.set(name, shared);
      shared.messages.add(failure.message);
      replies[status] = { $ref: `#/components/responses/${name}` };
    }
    return replies;
  }

  /** Returns the components to which the references lead. */
  components(): { responses: Record<string, object>; schemas: Record<string, object> } {
    const responses: Record<string, object> = {};
    const schemas: Record<string, object> = {};
    for (const [name, { errorBody, messages }] of this.#shared) {
      responses[name] = { description: [...messages].join(' '), ...contentOf(errorBody) };
      if (errorBody !== null) schemas[errorBody.name] = errorBody.schema;
    }
    return { responses, schemas };
  }
}

function contentOf(body: NamedSchema | null): object {
  if (body === null) return {};
  return { content: { 'application/json': { schema: { $ref: `#/components/schemas/${body.name}` } } } };
}
