/**
 * What an error says of its cause: whether the next start is likely to fail like this one, judged by what import or
 * `init` threw, whether memory was missing, and whether the process can go on. The network and scarce resources come
 * back; most other things do not.
 */
import { saysGpuIsLost, saysMemoryIsMissing } from './library-errors.js';

/** `permanent`: it would happen every time. `transient`: the next try may succeed. `unknown`: it may be either. */
export type Outlook = 'permanent' | 'transient' | 'unknown';

/** `transient` if the error, or one behind it (causes, parts of an AggregateError), is of the network or of a scarce resource. */
export function outlookOf(thrown: unknown): Outlook {
  return firstBehind(thrown, isTransient) === undefined ? 'unknown' : 'transient';
}

/** Whether the error, or one behind it, says that memory could not be had. What a client sent decides nothing. */
export function isOutOfMemory(thrown: unknown): boolean {
  const lacksMemory = (error: ErrorFacts): boolean =>
    MEMORY_CODES.has(error.code) || saysMemoryIsMissing(error);
  return firstBehind(thrown, lacksMemory) !== undefined;
}

/**
 * The message of the error, or of the one behind it, that says that the GPU is lost to this process: every later call would
 * fail, too. What a client sent decides nothing.
 */
export function lossOfGpu(thrown: unknown): string | undefined {
  return firstBehind(thrown, saysGpuIsLost)?.message;
}

function firstBehind(thrown: unknown, is: (error: ErrorFacts) => boolean): ErrorFacts | undefined {
  const errors = [thrown];
  for (let i = 0; i < errors.length && i < MAX_ERRORS; i += 1) {
    try {
      const error = factsOf(errors[i]);
      if (is(error)) return error;
      errors.push(...error.behind);
    } catch {
      // An error whose getters throw tells nothing.
    }
  }
  return undefined;
}

const MAX_ERRORS = 64;

const MEMORY_CODES: ReadonlySet<string> = new Set([
  'ENOMEM',
  'ERR_MEMORY_ALLOCATION_FAILED',
  'ERR_WORKER_OUT_OF_MEMORY',
]);

/** Codes of the system, of its resolver, and of Node's fetch. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  // The network: the other side is not there yet, is gone, or is too slow.
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETRESET',
  'ENETUNREACH',
  'EAI_AGAIN',
  'EAI_FAIL',
  'ENOTFOUND',
  'ETIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_SOCKET',
  'ERR_NETWORK',
  'ERR_STREAM_PREMATURE_CLOSE',
  // Resources that others have taken, or that are used up.
  'EADDRINUSE',
  'EAGAIN',
  'EBUSY',
  'EDQUOT',
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOSPC',
  ...MEMORY_CODES,
]);

/** Words of runtimes and drivers that have no code for too little memory. For starts alone: there no client has said anything yet. */
const MEMORY_TEXT = /out of memory|bad_alloc|allocation failed|failed to allocate/i;

interface ErrorFacts {
  readonly code: string;
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** The cause of the error, and its parts. */
  readonly behind: readonly unknown[];
}

function factsOf(thrown: unknown): ErrorFacts {
  if (typeof thrown !== 'object' || thrown === null) {
    return { code: '', name: '', message: typeof thrown === 'string' ? thrown : '', stack: '', behind: [] };
  }
  const { code, name, message, stack, cause, errors } = thrown as Record<string, unknown>;
  const parts: unknown[] = Array.isArray(errors) ? errors.slice(0, MAX_ERRORS) : [];
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const behind = [cause, ...parts];
  return { code: text(code), name: text(name), message: text(message), stack: text(stack), behind };
}

/** Whether the next try may succeed. Codes are looked for in the message too: an error that wraps another one may repeat its code there and forget its cause. */
function isTransient({ code, name, message }: ErrorFacts): boolean {
  // `TimeoutError` is what `AbortSignal.timeout` throws.
  if (TRANSIENT_CODES.has(code) || name === 'TimeoutError' || MEMORY_TEXT.test(message)) return true;
  const words = message.match(/\bE[A-Z_]{3,}\b/g) ?? [];
  return words.some((word) => TRANSIENT_CODES.has(word));
}
