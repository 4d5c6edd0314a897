/**
 * Every way a call or a server can fail, as data. Identity is the code: a class does not survive a pipe.
 * docs/errors.md says of each whether user code may have run, which decides if anyone may safely try again.
 * HTTP statuses are the front's business (supervisor/http/socket/http-status.ts).
 */
import { inspect } from 'node:util';

/**
 * The code that kept the call from its answer, and so the place to look first. `app`: the app's own code threw, took too
 * long or gave what cannot be sent. `server`: the server refused the request, could not run it, or lost the worker.
 */
export type ErrorSource = 'app' | 'server';

interface ErrorSpec {
  /** Safe for a client: says what happened without a secret, a path or a stack. */
  readonly message: string;
  readonly source: ErrorSource;
}

export const ERRORS = {
  SERVE_BAD_REQUEST: { message: 'The request is malformed.', source: 'server' },
  SERVE_BAD_BODY: { message: 'The request body could not be read.', source: 'server' },
  SERVE_UNAUTHORIZED: {
    message: 'This needs an API key, and the request has none that is known here.',
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
    message: 'The models of this server do not allow that.',
    source: 'server',
  },
  SERVE_ARCHIVE_INVALID: { message: 'What was found is no model that can be served.', source: 'server' },
  SERVE_DOWNLOAD_FAILED: { message: 'The model could not be downloaded.', source: 'server' },
  SERVE_BODY_TOO_LARGE: {
    message: 'The request body is larger than this server accepts.',
    source: 'server',
  },
  SERVE_UNSUPPORTED_CODING: {
    message: 'The request body is compressed in a way that this server does not know.',
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
    message: 'The call could not be put on record, and was not run; try again later.',
    source: 'server',
  },
  SERVE_QUEUE_TIMEOUT: { message: 'The call waited too long for a worker.', source: 'server' },
  SERVE_DEADLINE: { message: "The client's deadline passed.", source: 'server' },
  SERVE_INFERENCE_FAILED: { message: 'The model failed on this call.', source: 'app' },
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
  // A drain that cuts a call off, the kernel's memory killer: the app need not be at fault.
  SERVE_WORKER_LOST: {
    message: 'The worker died while running this call.',
    source: 'server',
  },
  SERVE_SLOW_READER: {
    message: 'The client was too slow to take its answer.',
    source: 'server',
  },
  SERVE_CANCELLED: { message: 'The client left.', source: 'server' },
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
 * What failed, for dialects whose clients are told. `exception`: the app threw. `prediction`: it says that its model
 * failed on this input. `out-of-memory`: there was no memory for it. `input`: it refuses the input. Empty: nobody said.
 */
export const ERROR_KINDS = ['', 'exception', 'prediction', 'out-of-memory', 'input'] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

export interface ServeErrorOptions {
  /** For the log only: stacks, paths, whatever a client must not see. */
  readonly detail?: string;
  readonly retryAfterS?: number;
  /** HTTP status of the app's choosing, 400 to 599; 0: the one that belongs to the code. */
  readonly status?: number;
  readonly kind?: ErrorKind;
  readonly cause?: unknown;
}

/** The one error of this project. `message` is safe to show a client; `detail` is for the log. */
export class ServeError extends Error {
  override readonly name = 'ServeError';
  readonly code: ErrorCode;
  readonly detail: string;
  readonly retryAfterS: number | undefined;
  readonly status: number;
  readonly kind: ErrorKind;

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
  }
}

/** The other side sent what the wire does not allow. `detail` says what, for the log. */
export function protocolError(detail: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_PROTOCOL', undefined, { detail, cause });
}

/** An option that the operator or the app's author has set is wrong; `message` names it, where it stands and the cure. */
export function configError(message: string): ServeError {
  return new ServeError('SERVE_CONFIG', message);
}

/** No new call is taken, and none that waits will run; another server may be up in a second. */
export function shuttingDown(): ServeError {
  return new ServeError('SERVE_SHUTTING_DOWN', undefined, { retryAfterS: 1 });
}

/** The codes that a worker may send about one call. The other codes belong to the front, or end a worker. */
const CALL_ERRORS: ReadonlySet<string> = new Set<ErrorCode>([
  'SERVE_BAD_BODY',
  'SERVE_INFERENCE_FAILED',
  'SERVE_OUTPUT_INVALID',
  'SERVE_OUTPUT_TOO_LARGE',
  'SERVE_CANCELLED',
]);

/** A call's error code as a worker sent it; anything else counts as the model's failure. */
export function asCallErrorCode(code: string): ErrorCode {
  return CALL_ERRORS.has(code) ? (code as ErrorCode) : 'SERVE_INFERENCE_FAILED';
}

const MAX_NESTED = 8;

/**
 * Text of anything a program may throw: of an error its stack, up to 8 of its causes and parts (of an AggregateError),
 * of anything else its content, for which no code of its own is run. Never throws.
 */
export function describeThrown(thrown: unknown): { message: string; stack: string } {
  return describe(thrown, { left: MAX_NESTED });
}

/** How many more errors behind the one that was thrown are shown. */
interface Room {
  left: number;
}

function describe(thrown: unknown, room: Room): { message: string; stack: string } {
  try {
    if (!(thrown instanceof Error)) {
      const text = typeof thrown === 'string' ? thrown : `thrown value: ${contentOf(thrown)}`;
      return { message: text, stack: text };
    }
    const stack = typeof thrown.stack === 'string' ? thrown.stack : '';
    return { message: String(thrown.message), stack: (stack || String(thrown)) + behind(thrown, room) };
  } catch {
    const text = 'a value that cannot be shown was thrown';
    return { message: text, stack: text };
  }
}

/** Text of what stands behind an error: the parts of an AggregateError, further in, then the cause. */
function behind(error: Error & { errors?: unknown }, room: Room): string {
  const parts = error instanceof AggregateError ? error.errors : [];
  const texts = parts.slice(0, room.left).map((part, i) => {
    return nested(`part ${i + 1} of ${parts.length}`, part, room).replaceAll('\n', '\n  ');
  });
  if (texts.length < parts.length) texts.push(`\n    and ${parts.length - texts.length} parts more`);
  if (error.cause !== undefined) texts.push(nested('caused by', error.cause, room));
  return texts.join('');
}

function nested(title: string, thrown: unknown, room: Room): string {
  if (room.left === 0) return '';
  room.left -= 1;
  return `\n  ${title}: ${describe(thrown, room).stack}`;
}

/** One line. Getters are not called, nor is a Proxy's handler. */
function contentOf(value: unknown): string {
  return inspect(value, { depth: 4, compact: true, breakLength: Infinity, customInspect: false });
}
