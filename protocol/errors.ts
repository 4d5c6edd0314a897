/**
 * Every way a call or a server can fail, as data. The code identifies an error, because a class does not survive a
 * pipe. docs/errors.md states for each whether user code may have run, which decides if the call may safely be
 * repeated.
 */
import { inspect } from 'node:util';

/**
 * Every code. `status`: what its HTTP client receives, in the house dialect; null: no client gets this code, it ends a worker
 * or the server. None is 429 or 502: common clients hide those. `source`: what kept the call from its answer, and so the place
 * to look first. `app`: the app's own code threw, took too long or returned something that cannot be sent. `server`: the
 * server refused the request, could not run it, or lost the worker. `message`: safe for a client, without a secret, a path or
 * a stack.
 */
export const ERRORS = {
  SERVE_BAD_REQUEST: { status: 400, source: 'server', message: 'The request is malformed.' },
  SERVE_BAD_BODY: { status: 400, source: 'server', message: 'The request body could not be read.' },
  SERVE_UNAUTHORIZED: {
    status: 401,
    source: 'server',
    message:
      'This request needs a valid API key: send it as X-BANANA-API-KEY: <key>, or as Authorization: Bearer <key>.',
  },
  SERVE_ORIGIN_REFUSED: {
    status: 403,
    source: 'server',
    message: 'Pages of this origin may not connect here.',
  },
  SERVE_NOT_FOUND: { status: 404, source: 'server', message: 'No such route.' },
  SERVE_MODEL_NOT_FOUND: { status: 404, source: 'server', message: 'No such model.' },
  SERVE_VERSION_NOT_FOUND: { status: 404, source: 'server', message: 'The model has no such version.' },
  SERVE_METHOD_NOT_ALLOWED: {
    status: 405,
    source: 'server',
    message: 'This route does not take that method.',
  },
  SERVE_UPGRADE_REQUIRED: { status: 426, source: 'server', message: 'This route is a WebSocket.' },
  SERVE_REQUEST_TIMEOUT: { status: 408, source: 'server', message: 'The request arrived too slowly.' },
  SERVE_MODEL_CONFLICT: {
    status: 409,
    source: 'server',
    message: 'This conflicts with a model of this server.',
  },
  SERVE_ARCHIVE_INVALID: {
    status: 400,
    source: 'server',
    message: 'The file or folder is not a model that can be served.',
  },
  SERVE_DOWNLOAD_FAILED: { status: 400, source: 'server', message: 'The model could not be downloaded.' },
  SERVE_BODY_TOO_LARGE: {
    status: 413,
    source: 'server',
    message: 'The request body is larger than this server accepts.',
  },
  SERVE_UNSUPPORTED_CODING: {
    status: 415,
    source: 'server',
    message: 'The request body has a compression that this server does not support.',
  },
  SERVE_HEADERS_TOO_LARGE: { status: 431, source: 'server', message: 'The request headers are too large.' },
  SERVE_QUEUE_FULL: { status: 503, source: 'server', message: 'The queue is full; try again later.' },
  SERVE_OVERLOADED: {
    status: 503,
    source: 'server',
    message: 'The call could not be answered before its deadline.',
  },
  SERVE_NOT_READY: { status: 503, source: 'server', message: 'No worker of this model can start.' },
  SERVE_SHUTTING_DOWN: { status: 503, source: 'server', message: 'The server is shutting down.' },
  SERVE_NOT_BEGUN: {
    status: 503,
    source: 'server',
    message: 'Two workers died before this call began; it did not run.',
  },
  SERVE_NOT_KEPT: {
    status: 503,
    source: 'server',
    message: 'The call could not be recorded and was not run; try again later.',
  },
  SERVE_JOBS_UNAVAILABLE: {
    status: 503,
    source: 'server',
    message: 'The jobs of this server cannot be reached now; try again later.',
  },
  SERVE_KEY_CONFLICT: {
    status: 422,
    source: 'server',
    message: 'This Idempotency-Key belongs to a call with another content type or body.',
  },
  SERVE_FORBIDDEN: { status: 403, source: 'server', message: 'This request is not allowed from here.' },
  SERVE_JOB_EXPIRED: { status: 504, source: 'server', message: 'The job did not begin in time.' },
  SERVE_JOB_CANCELLED: { status: 409, source: 'server', message: 'The job was cancelled.' },
  SERVE_JOB_ENDED: { status: 409, source: 'server', message: 'The job has ended already.' },
  SERVE_RESULT_DROPPED: {
    status: 410,
    source: 'server',
    message: 'The result of the job is not kept any more.',
  },
  SERVE_QUEUE_TIMEOUT: { status: 504, source: 'server', message: 'The call waited too long for a worker.' },
  SERVE_DEADLINE: { status: 504, source: 'server', message: "The client's deadline passed." },
  SERVE_INFERENCE_FAILED: { status: 500, source: 'app', message: 'The model failed on this call.' },
  // Its status counts only if the worker sent none: an app always chooses one.
  SERVE_HTTP_ERROR: { status: 500, source: 'app', message: 'The app refused this call.' },
  SERVE_INPUT_INVALID: { status: 422, source: 'app', message: 'The input does not fit its schema.' },
  SERVE_OUTPUT_INVALID: { status: 500, source: 'app', message: "The model's output could not be encoded." },
  SERVE_OUTPUT_TOO_LARGE: {
    status: 500,
    source: 'app',
    message: "The model's output is larger than allowed.",
  },
  SERVE_INFERENCE_TIMEOUT: { status: 504, source: 'app', message: 'The model took too long on this call.' },
  // The cause may be a drain or the kernel's OOM killer, so the app need not be at fault.
  SERVE_WORKER_LOST: { status: 500, source: 'server', message: 'The worker died while running this call.' },
  SERVE_SLOW_READER: { status: null, source: 'server', message: 'The client read its answer too slowly.' },
  SERVE_CANCELLED: { status: null, source: 'server', message: 'The client disconnected.' },
  // The callers of that worker get SERVE_WORKER_LOST.
  SERVE_PROTOCOL: { status: null, source: 'server', message: 'A worker broke the protocol.' },
  SERVE_INTERNAL: { status: 500, source: 'server', message: 'The server failed on this request.' },
  SERVE_APP_INVALID: { status: null, source: 'app', message: 'The app cannot be loaded.' },
  SERVE_INIT_FAILED: { status: null, source: 'app', message: "The app's init failed." },
  SERVE_INIT_TIMEOUT: { status: null, source: 'app', message: "The app's init took too long." },
  SERVE_CRASH_LOOP: { status: null, source: 'server', message: 'The workers keep dying.' },
  SERVE_CONFIG: { status: null, source: 'server', message: 'An option is wrong.' },
} as const satisfies Record<
  string,
  { readonly status: number | null; readonly source: 'app' | 'server'; readonly message: string }
>;

/**
 * The code of an error; docs/errors.md describes each.
 * @example
 * const mayRepeat: readonly ErrorCode[] = ['SERVE_QUEUE_FULL', 'SERVE_NOT_BEGUN'];
 */
export type ErrorCode = keyof typeof ERRORS;

/** Codes of calls of which the app may have run, the `ran?` of docs/errors.md, and of what is no call. */
const MAY_HAVE_BEGUN: ReadonlySet<ErrorCode> = new Set([
  'SERVE_NOT_KEPT',
  'SERVE_JOB_CANCELLED',
  'SERVE_JOB_ENDED',
  'SERVE_RESULT_DROPPED',
  'SERVE_DEADLINE',
  'SERVE_INFERENCE_FAILED',
  'SERVE_HTTP_ERROR',
  'SERVE_OUTPUT_INVALID',
  'SERVE_OUTPUT_TOO_LARGE',
  'SERVE_INFERENCE_TIMEOUT',
  'SERVE_WORKER_LOST',
  'SERVE_INTERNAL',
  'SERVE_SLOW_READER',
  'SERVE_CANCELLED',
  'SERVE_PROTOCOL',
]);

/** The status that a client receives; 500 for codes that are not meant for clients. */
export function httpStatus(code: ErrorCode): number {
  return ERRORS[code].status ?? 500;
}

/** The status that the client of an answer with this error saw; null if it left, or was cut off. */
export function seenStatus(status: number, { code }: { readonly code: ErrorCode }): number | null {
  return ERRORS[code].status === null ? null : status;
}

/**
 * The cause of a failure, for dialects that report it to clients. `exception`: the app threw. `prediction`: the app
 * reports that its model failed on this input. `out-of-memory`: there was not enough memory. `input`: the app refuses
 * the input. Empty: not known.
 */
export const ERROR_KINDS = ['', 'exception', 'prediction', 'out-of-memory', 'input'] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

/** A wrong value in the input of a call, as the app found it. */
export interface Issue {
  /** Keys and indexes, from the input down to the value. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/**
 * The errors of a server and of its calls, told apart by `code`. `message` is safe to show a client.
 * @example
 * const model = await supervise('./embed.ts');
 * const answer = await model('hello').catch((error: ServeError) => error.code);
 */
export class ServeError extends Error {
  override readonly name = 'ServeError';
  readonly code: ErrorCode;
  /** For the log only: stacks, paths, and everything else that a client must not see. */
  readonly detail: string;
  readonly retryAfterS: number | undefined;
  /** HTTP status that the app chose, 400 to 599; 0: the one that belongs to the code. */
  readonly status: number;
  readonly kind: ErrorKind;
  readonly issues: readonly Issue[];
  /** Whether the app may have begun to run the call; if nobody knows, as usual for the code. */
  readonly begun: boolean;

  constructor(
    code: ErrorCode,
    message?: string,
    options: Partial<
      Pick<ServeError, 'detail' | 'retryAfterS' | 'status' | 'kind' | 'issues' | 'cause' | 'begun'>
    > = {},
  ) {
    super(
      message ?? ERRORS[code].message,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.detail = options.detail ?? '';
    this.retryAfterS = options.retryAfterS;
    this.status = options.status ?? 0;
    this.kind = options.kind ?? '';
    this.issues = options.issues ?? [];
    this.begun = options.begun ?? MAY_HAVE_BEGUN.has(code);
  }

  /** Time after which it may be worth to try again; undefined if nobody knows. */
  get retryAfterMs(): number | undefined {
    return this.retryAfterS === undefined ? undefined : 1000 * this.retryAfterS;
  }
}

/** The error for one caller; the same one may end several calls. `hasBegun`: a worker has begun the call, which may be to refuse its input. */
export function asCallers(error: ServeError, hasBegun: boolean): ServeError {
  const { code, message, detail, retryAfterS, status, kind, issues, cause } = error;
  const begun = hasBegun && code !== 'SERVE_BAD_BODY' && code !== 'SERVE_INPUT_INVALID';
  return new ServeError(code, message, { detail, retryAfterS, status, kind, issues, cause, begun });
}

/** The other side broke the protocol; `detail` describes how, for the log. */
export function protocolError(detail: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_PROTOCOL', undefined, { detail, cause });
}

/** A body that cannot be the input of the call: the client gets the message. */
export function badBody(message: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_BAD_BODY', message, { cause });
}

/** A body with a wrong field; an empty `field` stands for the body itself. */
export function badField(field: string, message: string): ServeError {
  const issues = field === '' ? [] : [{ path: [field], message }];
  return new ServeError('SERVE_BAD_BODY', message, { issues });
}

/** An output of the app that cannot be the answer of the call: the client gets the message. */
export function badOutput(
  message: string,
  options: Pick<ErrorOptions & Partial<ServeError>, 'cause' | 'detail'> = {},
): ServeError {
  return new ServeError('SERVE_OUTPUT_INVALID', message, options);
}

/** The app cannot answer what this client asks for, though another call may be fine: 400, with the message. */
export function refusal(message: string, issues: readonly Issue[] = []): ServeError {
  return new ServeError('SERVE_HTTP_ERROR', message, { status: 400, issues });
}

/** An option of the operator or the app's author is wrong; `message` names it, its place and the cure. */
export function configError(message: string): ServeError {
  return new ServeError('SERVE_CONFIG', message);
}

/** The server takes no new calls and runs none that wait; another server may be up in a second. */
export function shuttingDown(): ServeError {
  return new ServeError('SERVE_SHUTTING_DOWN', undefined, { retryAfterS: 1 });
}

/** Whether the app refused the call, by its schema or with a status from 400 to 499: the client's mistake, and no failure of the model. */
export function isAppsRefusal({ code, status }: ServeError): boolean {
  return code === 'SERVE_INPUT_INVALID' || (code === 'SERVE_HTTP_ERROR' && status >= 400 && status < 500);
}

/** Codes that a worker may send about one call. */
export const CALL_ERRORS = [
  'SERVE_BAD_BODY',
  'SERVE_INFERENCE_FAILED',
  'SERVE_HTTP_ERROR',
  'SERVE_INPUT_INVALID',
  'SERVE_OUTPUT_INVALID',
  'SERVE_OUTPUT_TOO_LARGE',
  'SERVE_CANCELLED',
] as const;

/** Codes that end a worker. Other codes belong to the front. */
export const WORKER_ERRORS = [
  'SERVE_WORKER_LOST',
  'SERVE_PROTOCOL',
  'SERVE_INTERNAL',
  'SERVE_APP_INVALID',
  'SERVE_INIT_FAILED',
] as const;

/** The error code of a call that a worker sent; an unknown one counts as the model's failure. */
export function asCallErrorCode(code: string): ErrorCode {
  return CALL_ERRORS.find((one) => one === code) ?? 'SERVE_INFERENCE_FAILED';
}

/** Parts of AggregateErrors that are described. */
const MAX_PARTS = 8;

/** Errors of a chain of causes that are shown at its beginning, and at its end. */
const SHOWN = 10;

/** The search for the end of a chain stops here. */
const MAX_CHAIN = 10_000;

/**
 * Describes anything that a program may throw: an error by its stack, with the first and last 10 of its chain of causes and
 * up to 8 parts (of AggregateErrors, counted in `room`), anything else by its content, without running code of its own. Never throws.
 */
export function describeThrown(thrown: unknown): { message: string; stack: string } {
  return describe(thrown, { left: MAX_PARTS });
}

function describe(thrown: unknown, room: { left: number }): { message: string; stack: string } {
  const { message, stack } = describeOne(thrown, room);
  const causes = causesOf(thrown);
  const left = causes.length + 1 - 2 * SHOWN;
  const texts = causes.map((cause, i) => {
    if (left <= 0 || i < SHOWN - 1 || i >= SHOWN - 1 + left)
      return `\n  caused by: ${describeOne(cause, room).stack}`;
    return i === SHOWN - 1 ? `\n  (${left} more causes)` : '';
  });
  return { message, stack: stack + texts.join('') };
}

/** The causes of an error, the outermost first; each once, if they are a circle. */
function causesOf(thrown: unknown): unknown[] {
  const chain = new Set([thrown]);
  try {
    for (let last = thrown; last instanceof Error && chain.size < MAX_CHAIN; chain.add(last)) {
      last = last.cause;
      if (last === undefined || chain.has(last)) break;
    }
  } catch {
    // The cause of the last one cannot be read.
  }
  return [...chain].slice(1);
}

function describeOne(thrown: unknown, room: { left: number }): { message: string; stack: string } {
  try {
    if (!(thrown instanceof Error)) {
      const text = typeof thrown === 'string' ? thrown : `thrown value: ${contentOf(thrown)}`;
      return { message: text, stack: text };
    }
    const stack = typeof thrown.stack === 'string' ? thrown.stack : '';
    return { message: String(thrown.message), stack: (stack || String(thrown)) + partsOf(thrown, room) };
  } catch {
    const text = 'a value that cannot be shown was thrown';
    return { message: text, stack: text };
  }
}

/** Describes the parts of an AggregateError, indented. */
function partsOf(error: Error, room: { left: number }): string {
  const parts: unknown[] = error instanceof AggregateError ? error.errors : [];
  const texts = parts.slice(0, room.left).map((part, i) => {
    if (room.left === 0) return '';
    room.left -= 1;
    const text = `\n  part ${i + 1} of ${parts.length}: ${describe(part, room).stack}`;
    return text.replaceAll('\n', '\n  ');
  });
  if (texts.length < parts.length) texts.push(`\n    and ${parts.length - texts.length} more parts`);
  return texts.join('');
}

/** Describes a value in one line. Calls neither getters nor a Proxy's handler. */
function contentOf(value: unknown): string {
  return inspect(value, { depth: 4, compact: true, breakLength: Infinity, customInspect: false });
}
