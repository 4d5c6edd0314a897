/**
 * Every way a call or a server can fail, as data. The code identifies an error, because a class does not survive a
 * pipe. docs/errors.md states for each whether user code may have run, which decides if the call may safely be
 * repeated. The front maps codes to HTTP statuses (supervisor/http/socket/http-status.ts).
 */
import { inspect } from 'node:util';

/**
 * The code that kept the call from its answer, and so the place to look first. `app`: the app's own code threw, took
 * too long or returned something that cannot be sent. `server`: the server refused the request, could not run it, or
 * lost the worker.
 */
export type ErrorSource = 'app' | 'server';

interface ErrorSpec {
  /** Safe for a client: describes the failure without a secret, a path or a stack. */
  readonly message: string;
  readonly source: ErrorSource;
}

export const ERRORS = {
  SERVE_BAD_REQUEST: { message: 'The request is malformed.', source: 'server' },
  SERVE_BAD_BODY: { message: 'The request body could not be read.', source: 'server' },
  SERVE_UNAUTHORIZED: {
    message:
      'This request needs a valid API key: send it as X-BANANA-API-KEY: <key>, or as Authorization: Bearer <key>.',
    source: 'server',
  },
  SERVE_ORIGIN_REFUSED: {
    message: 'Pages of this origin may not connect here.',
    source: 'server',
  },
  SERVE_NOT_FOUND: { message: 'No such route.', source: 'server' },
  SERVE_MODEL_NOT_FOUND: { message: 'No such model.', source: 'server' },
  SERVE_VERSION_NOT_FOUND: { message: 'The model has no such version.', source: 'server' },
  SERVE_METHOD_NOT_ALLOWED: {
    message: 'This route does not take that method.',
    source: 'server',
  },
  SERVE_UPGRADE_REQUIRED: { message: 'This route is a WebSocket.', source: 'server' },
  SERVE_REQUEST_TIMEOUT: { message: 'The request arrived too slowly.', source: 'server' },
  SERVE_MODEL_CONFLICT: {
    message: 'This conflicts with a model of this server.',
    source: 'server',
  },
  SERVE_ARCHIVE_INVALID: {
    message: 'The file or folder is not a model that can be served.',
    source: 'server',
  },
  SERVE_DOWNLOAD_FAILED: { message: 'The model could not be downloaded.', source: 'server' },
  SERVE_BODY_TOO_LARGE: {
    message: 'The request body is larger than this server accepts.',
    source: 'server',
  },
  SERVE_UNSUPPORTED_CODING: {
    message: 'The request body has a compression that this server does not support.',
    source: 'server',
  },
  SERVE_HEADERS_TOO_LARGE: { message: 'The request headers are too large.', source: 'server' },
  SERVE_QUEUE_FULL: { message: 'The queue is full; try again later.', source: 'server' },
  SERVE_OVERLOADED: {
    message: 'The call could not be answered before its deadline.',
    source: 'server',
  },
  SERVE_NOT_READY: { message: 'No worker of this model can start.', source: 'server' },
  SERVE_SHUTTING_DOWN: { message: 'The server is shutting down.', source: 'server' },
  SERVE_NOT_BEGUN: {
    message: 'Two workers died before this call began; it did not run.',
    source: 'server',
  },
  SERVE_NOT_KEPT: {
    message: 'The call could not be recorded and was not run; try again later.',
    source: 'server',
  },
  SERVE_JOBS_UNAVAILABLE: {
    message: 'The jobs of this server cannot be reached now; try again later.',
    source: 'server',
  },
  SERVE_KEY_CONFLICT: {
    message: 'This Idempotency-Key belongs to a call with another content type or body.',
    source: 'server',
  },
  SERVE_FORBIDDEN: { message: 'This request is not allowed from here.', source: 'server' },
  SERVE_JOB_EXPIRED: { message: 'The job did not begin in time.', source: 'server' },
  SERVE_JOB_CANCELLED: { message: 'The job was cancelled.', source: 'server' },
  SERVE_JOB_ENDED: { message: 'The job has ended already.', source: 'server' },
  SERVE_RESULT_DROPPED: { message: 'The result of the job is not kept any more.', source: 'server' },
  SERVE_QUEUE_TIMEOUT: { message: 'The call waited too long for a worker.', source: 'server' },
  SERVE_DEADLINE: { message: "The client's deadline passed.", source: 'server' },
  SERVE_INFERENCE_FAILED: { message: 'The model failed on this call.', source: 'app' },
  SERVE_HTTP_ERROR: { message: 'The app refused this call.', source: 'app' },
  SERVE_OUTPUT_INVALID: {
    message: "The model's output could not be encoded.",
    source: 'app',
  },
  SERVE_OUTPUT_TOO_LARGE: {
    message: "The model's output is larger than allowed.",
    source: 'app',
  },
  SERVE_INFERENCE_TIMEOUT: {
    message: 'The model took too long on this call.',
    source: 'app',
  },
  // The cause may be a drain or the kernel's OOM killer, so the app need not be at fault.
  SERVE_WORKER_LOST: {
    message: 'The worker died while running this call.',
    source: 'server',
  },
  SERVE_SLOW_READER: {
    message: 'The client read its answer too slowly.',
    source: 'server',
  },
  SERVE_CANCELLED: { message: 'The client disconnected.', source: 'server' },
  SERVE_PROTOCOL: { message: 'A worker broke the protocol.', source: 'server' },
  SERVE_INTERNAL: { message: 'The server failed on this request.', source: 'server' },
  SERVE_APP_INVALID: { message: 'The app cannot be loaded.', source: 'app' },
  SERVE_INIT_FAILED: { message: "The app's init failed.", source: 'app' },
  SERVE_INIT_TIMEOUT: { message: "The app's init took too long.", source: 'app' },
  SERVE_CRASH_LOOP: { message: 'The workers keep dying.', source: 'server' },
  SERVE_CONFIG: { message: 'An option is wrong.', source: 'server' },
} as const satisfies Record<string, ErrorSpec>;

export type ErrorCode = keyof typeof ERRORS;

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

export interface ServeErrorOptions {
  /** For the log only: stacks, paths, and everything else that a client must not see. */
  readonly detail?: string;
  readonly retryAfterS?: number;
  /** HTTP status that the app chose, 400 to 599; 0: the one that belongs to the code. */
  readonly status?: number;
  readonly kind?: ErrorKind;
  readonly issues?: readonly Issue[];
  readonly cause?: unknown;
}

/** The only error class of this project. `message` is safe to show a client; `detail` is for the log. */
export class ServeError extends Error {
  override readonly name = 'ServeError';
  readonly code: ErrorCode;
  readonly detail: string;
  readonly retryAfterS: number | undefined;
  readonly status: number;
  readonly kind: ErrorKind;
  readonly issues: readonly Issue[];

  constructor(code: ErrorCode, message?: string, options: ServeErrorOptions = {}) {
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
  }
}

/** The other side broke the protocol; `detail` describes how, for the log. */
export function protocolError(detail: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_PROTOCOL', undefined, { detail, cause });
}

/** An option of the operator or the app's author is wrong; `message` names it, its place and the cure. */
export function configError(message: string): ServeError {
  return new ServeError('SERVE_CONFIG', message);
}

/** The server takes no new calls and runs none that wait; another server may be up in a second. */
export function shuttingDown(): ServeError {
  return new ServeError('SERVE_SHUTTING_DOWN', undefined, { retryAfterS: 1 });
}

/** Whether the app refused the call with a status from 400 to 499: the client's mistake, and no failure of the model. */
export function isAppsRefusal({ code, status }: ServeError): boolean {
  return code === 'SERVE_HTTP_ERROR' && status >= 400 && status < 500;
}

/** Codes that a worker may send about one call. Other codes belong to the front, or end a worker. */
const CALL_ERRORS: ReadonlySet<string> = new Set<ErrorCode>([
  'SERVE_BAD_BODY',
  'SERVE_INFERENCE_FAILED',
  'SERVE_HTTP_ERROR',
  'SERVE_OUTPUT_INVALID',
  'SERVE_OUTPUT_TOO_LARGE',
  'SERVE_CANCELLED',
]);

/** The error code of a call that a worker sent; an unknown one counts as the model's failure. */
export function asCallErrorCode(code: string): ErrorCode {
  return CALL_ERRORS.has(code) ? (code as ErrorCode) : 'SERVE_INFERENCE_FAILED';
}

/** Parts of AggregateErrors that are described. */
const MAX_PARTS = 8;

/** Errors of a chain of causes that are shown at its beginning, and at its end. */
const SHOWN = 10;

/** The search for the end of a chain stops here. */
const MAX_CHAIN = 10_000;

/**
 * Describes anything that a program may throw: an error by its stack, with the first and last 10 of its chain of causes and
 * up to 8 parts (of AggregateErrors), anything else by its content, without running code of its own. Never throws.
 */
export function describeThrown(thrown: unknown): { message: string; stack: string } {
  return describe(thrown, { left: MAX_PARTS });
}

/** Number of parts that may still be described. */
interface Room {
  left: number;
}

function describe(thrown: unknown, room: Room): { message: string; stack: string } {
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

function describeOne(thrown: unknown, room: Room): { message: string; stack: string } {
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
function partsOf(error: Error, room: Room): string {
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
