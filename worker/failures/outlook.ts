/**
 * Judges an error by its cause: whether the next start is likely to fail like this one (from the error of import or
 * `init`), whether memory was missing, and whether the process can go on. Failures of the network and of scarce
 * resources pass; most others do not.
 *
 * The errors of V8 and ONNX Runtime for missing memory and for a lost GPU have no code. An app's error may repeat text that a
 * client sent, so both must match: the text must begin like theirs, and the innermost frame of the stack must be theirs.
 */

/** `permanent`: it would fail every time. `transient`: the next try may succeed. `unknown`: either. */
export type Outlook = 'permanent' | 'transient' | 'unknown';

/**
 * Returns `transient` if the error, or one behind it (causes, parts of an AggregateError), is of the network or of a
 * scarce resource.
 */
export function outlookOf(thrown: unknown): Outlook {
  return firstBehind(thrown, isTransient) === undefined ? 'unknown' : 'transient';
}

/**
 * Whether the error, or one behind it, reports that memory was not available. Text that a client sent does not count.
 */
export function isOutOfMemory(thrown: unknown): boolean {
  const lacksMemory = (error: ErrorFacts): boolean =>
    MEMORY_CODES.has(error.code) || saysMemoryIsMissing(error);
  return firstBehind(thrown, lacksMemory) !== undefined;
}

/**
 * Returns the message of the error, or of the one behind it, that reports that the GPU is lost to this process: every
 * later call would fail too. Text that a client sent does not count.
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
      // Nothing is known about an error whose getters throw.
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

/** Error codes of the system, of its resolver, and of Node's fetch. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  // The network: the other side is not up yet, is gone, or is too slow.
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
  // Resources that other programs hold, or that are used up.
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

/**
 * Texts of runtimes and drivers that have no code for a lack of memory. Used for starts only, when no client has sent
 * anything yet.
 */
const MEMORY_TEXT = /out of memory|bad_alloc|allocation failed|failed to allocate/i;

interface ErrorFacts {
  readonly code: string;
  readonly name: string;
  readonly message: string;
  /** As V8 writes it: name and message, then a line for each frame. */
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

/**
 * Whether the next try may succeed. Codes are searched for in the message too, because an error that wraps another one
 * may repeat its code there and drop its cause.
 */
function isTransient({ code, name, message }: ErrorFacts): boolean {
  // `TimeoutError` is what `AbortSignal.timeout` throws.
  if (TRANSIENT_CODES.has(code) || name === 'TimeoutError' || MEMORY_TEXT.test(message)) return true;
  const words = message.match(/\bE[A-Z_]{3,}\b/g) ?? [];
  return words.some((word) => TRANSIENT_CODES.has(word));
}

/** Whether the error means that no later call of this process on the GPU can succeed. */
function saysGpuIsLost(error: ErrorFacts): boolean {
  return LOST.test(error.message) && ONNX_PLACE.test(stackPlace(error));
}

/** Whether the error means that memory was missing, on the GPU or in the host. */
function saysMemoryIsMissing(error: ErrorFacts): boolean {
  if (error.message === NO_BUFFER) return BUILT_IN.test(stackPlace(error));
  return NO_MEMORY.test(error.message) && ONNX_PLACE.test(stackPlace(error));
}

/**
 * Returns the innermost frame, without its function, as the place where the error was created. Empty if the stack has
 * none.
 */
function stackPlace({ message, stack }: ErrorFacts): string {
  const head = ['Error', 'RangeError'].find((name) => stack.startsWith(`${name}: ${message}\n`));
  if (head === undefined) return '';
  const [frame = ''] = stack.slice(head.length + message.length + 3).split('\n', 1);
  const at = frame.replace(/^ {4}at /, '');
  const open = at.indexOf(' (');
  return open < 0 ? at : at.slice(open + 2, -1);
}

const NO_BUFFER = 'Array buffer allocation failed';

/** Matches functions of V8 and of Node. */
const BUILT_IN = /^(?:<anonymous>$|node:)/;

/** Native code has no frame; the innermost one is that of the package's file that called it. */
const ONNX_PLACE = /[\\/]node_modules[\\/]onnxruntime-(?:node|web|common)[\\/].*:\d+:\d+$/;

/**
 * Matches the prefix of an error of one node of the model, which may repeat an input; but these files report only their
 * own errors.
 */
const NODE = `(?:Non-zero status code returned while running \\S+ node\\. ?Name:'[^'\\n]*' ?Status Message: \\s*)?`;
const CUDA_CALL = '(?:\\S*cuda_call\\.cc:\\d+ [^\\n]*?)?';
const CUDA = `${CUDA_CALL}CUDA failure \\d+: `;
const CUBLAS = `${CUDA_CALL}CUBLAS failure \\d+: CUBLAS_STATUS_`;
const CUDNN = `${CUDA_CALL}CUDNN failure \\d+: CUDNN_STATUS_`;

/** Errors of CUDA that concern the process. */
const LOST_CONTEXT = [
  'an illegal memory access was encountered',
  'device-side assert triggered',
  'unspecified launch failure',
  'misaligned address',
  'an illegal instruction was encountered',
  'operation not supported on global/shared address space',
  'invalid program counter',
  'hardware stack error',
  'uncorrectable ECC error encountered',
  'context is destroyed',
].join('|');

/** Errors of its libraries that concern the process, not one call (such as a wrong value or an unsupported size). */
const LOST_LIBRARY = ['EXECUTION_FAILED', 'INTERNAL_ERROR', 'MAPPING_ERROR', 'NOT_INITIALIZED'].join('|');

const LOST = new RegExp(
  `^${NODE}(?:${CUDA}(?:${LOST_CONTEXT})|(?:${CUBLAS}|${CUDNN})(?:${LOST_LIBRARY})\\b)`,
);

const NO_MEMORY = new RegExp(
  `^(?:failed to call OrtRun\\(\\)\\. ERROR_CODE: \\d+, ERROR_MESSAGE: )?${NODE}(?:${[
    `${CUDA}out of memory`,
    `(?:${CUBLAS}|${CUDNN})ALLOC_FAILED\\b`,
    '\\S*bfc_arena\\.cc:\\d+ [^\\n]*?Failed to allocate memory',
    'std::bad_alloc',
    'bad allocation',
  ].join('|')})`,
);
