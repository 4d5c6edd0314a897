/**
 * Recognises the errors of V8 and ONNX Runtime for missing memory and for a lost GPU. An app's error may repeat text
 * that a client sent, so both must match: the text must begin like theirs, and the innermost frame of the stack must be
 * theirs.
 */

/** The parts of an error that are examined. The stack is as V8 writes it: name and message, then a line for each frame. */
type ThrownText = Required<Pick<Error, 'message' | 'stack'>>;

/** Whether the error means that no later call of this process on the GPU can succeed. */
export function saysGpuIsLost(error: ThrownText): boolean {
  return LOST.test(error.message) && ONNX_PLACE.test(stackPlace(error));
}

/** Whether the error means that memory was missing, on the GPU or in the host. */
export function saysMemoryIsMissing(error: ThrownText): boolean {
  if (error.message === NO_BUFFER) return BUILT_IN.test(stackPlace(error));
  return NO_MEMORY.test(error.message) && ONNX_PLACE.test(stackPlace(error));
}

/**
 * Returns the innermost frame, without its function, as the place where the error was created. Empty if the stack has
 * none.
 */
function stackPlace({ message, stack }: ThrownText): string {
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
