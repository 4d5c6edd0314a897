/** Explains in plain words why onnxruntime makes no session of a model: its file, its weights, or where it is to run. */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { describeThrown } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import { outlookOf } from '../../failures/outlook.js';
import { AppLoadError } from '../explain-load-error.js';
import { CPU, SERVE_WITHOUT } from './providers.js';

/** A session that was to be made. */
export interface SessionAttempt {
  readonly path: string;
  /** As onnxruntime has them, and as the operator wrote them. */
  readonly providers: readonly string[];
  readonly given: readonly string[];
}

/** A lack of memory on a GPU may pass, as when another worker there ends; all else would fail every time. */
export function explainSessionError(attempt: SessionAttempt, thrown: unknown): AppLoadError {
  const { message } = describeThrown(thrown);
  const text = fileProblem(attempt.path, message) ?? providerProblem(attempt, message) ?? reworded(message);
  const mayPass = attempt.providers.some((name) => name !== CPU) && outlookOf(thrown) === 'transient';
  return new AppLoadError(`${attempt.path}: ${text}`, { cause: thrown, permanent: !mayPass });
}

/** For a file that is not a model at all. */
function fileProblem(path: string, message: string): string | null {
  if (!/Protobuf parsing failed|does not have a graph/.test(message)) return null;
  if (statSync(path, { throwIfNoEntry: false })?.size === 0)
    return 'the file is empty. Copy or export it again.';
  if (headOf(path).startsWith('version https://git-lfs.'))
    return 'the file is only a pointer of Git LFS to the model. Run: git lfs pull';
  return 'the file is not whole, or no ONNX model. Copy or export it again.';
}

function headOf(path: string): string {
  const head = Buffer.alloc(64);
  const file = openSync(path, 'r');
  try {
    return head.subarray(0, readSync(file, head)).toString('latin1');
  } finally {
    closeSync(file);
  }
}

function providerProblem({ providers, given }: SessionAttempt, message: string): string | null {
  if (message.includes('fallback to CPU EP has been explicitly disabled'))
    return `a part of the model would run on the CPU, which --providers ${given.join(',')} does not have. Add it: --providers ${[...given, CPU].join(',')}`;
  const [first = CPU] = given;
  if (providers[0] === CPU || !PROVIDER_FAILED.test(message)) return null;
  const why = /Failed to load shared library/.test(message)
    ? 'the line of onnxruntime above names a library that it lacks; cuda needs CUDA 12 and cuDNN 9.'
    : asSentence(onOneLine(message));
  return `onnxruntime cannot use ${first}: ${why} ${SERVE_WITHOUT}`;
}

const PROVIDER_FAILED = /ExecutionProvider|CUDA|CUBLAS|CUDNN|webgpu|CoreML/i;

/** The messages of onnxruntime (1.22 to 1.30) that have a cure, and what is said instead. */
const WORDS: readonly (readonly [pattern: RegExp, text: (...groups: string[]) => string])[] = [
  [
    /Opset (\d+) is under development .* till opset (\d+)/,
    (given, last) =>
      `the model uses operator set ${given}, and this onnxruntime has those up to ${last}. Export it with opset_version=${last}, or install a newer onnxruntime-node.`,
  ],
  [
    /Unsupported model IR version: (\d+), max supported IR version: (\d+)/,
    (given, last) =>
      `the model is in version ${given} of the format, and this onnxruntime reads those up to ${last}. Install a newer onnxruntime-node.`,
  ],
  [
    /No Op registered for (\S+) with domain_version of (\d+)/,
    (op, opset) =>
      Number(opset) < OLDEST_OPSET
        ? ofOldOpset(op, opset)
        : `its operator ${op} is unknown to this onnxruntime (operator set ${opset}). Export the model without it, or install a newer onnxruntime-node.`,
  ],
  [
    /Could not find an implementation for (\S+)\((\d+)\) node with name '(.*)'/,
    (op, opset, name) =>
      Number(opset) < OLDEST_OPSET
        ? ofOldOpset(op, opset)
        : `this onnxruntime cannot run its operator ${op}${name === '' ? '' : ` (${name})`} with the types of its inputs. Add a Cast before it, for example to FP32, and one behind it, or export it with another opset_version.`,
  ],
  [
    /Type '(?:tensor\((\S+)\)|(\S+))' of input parameter \(.*?\) of operator \((\S+)\)/,
    (tensor, other, op) =>
      `its operator ${op} takes no ${tensor || other} in its operator set. Add a Cast before it, for example to FP32, or export it with a newer opset_version.`,
  ],
  [
    /Fatal error: (\S+?)\(-?\d+\) is not a registered function\/op/,
    (op) => `its operator ${op} is unknown to onnxruntime-node. Export the model without custom operators.`,
  ],
  [
    /External data path does not exist: "(.+)"/,
    (file) => `its weights are in another file, which is missing: ${file}. Copy it there.`,
  ],
  [
    /External data path: "(.+)" resolved path: "(.+)" allowed/,
    (file, target) =>
      `its weights ${file} are outside of its folder, in ${target}, as links of a cache are; onnxruntime refuses that. Copy both without links: cp -L`,
  ],
  [
    /Absolute path not allowed for external data/,
    () => 'it names the file of its weights by an absolute path. Save it again with the weights beside it.',
  ],
  [
    /External initializer: (.+?) offset: \d+ size to read: (\d+) given file_length: (\d+)/,
    (name, wanted, given) =>
      `the file of its weights is not whole: it has ${given} bytes, and ${name} needs ${wanted} of them or more. Copy it again.`,
  ],
  [
    /Initializer '(.+)' declares a size of (\d+) bytes/,
    (name, bytes) =>
      `its weights ${name} have ${bytes} bytes, more than a model may hold. Export it with external data.`,
  ],
  [
    /Unsupported data type: (\d+)/,
    (type) =>
      `an input or an output has the type ${TYPE_NAMES[type] ?? `number ${type}`}, which onnxruntime-node cannot pass on. Add a Cast to the model, for example to FP32.`,
  ],
  [
    /bad_alloc|bad allocation|Failed to allocate memory/,
    () => 'there is not enough memory to load it. Give the process more, or export a smaller model.',
  ],
];

/** Names of the types of ONNX that onnxruntime-node does not know, by the numbers of onnxruntime: its last three differ. */
const TYPE_NAMES: Readonly<Record<string, string>> = {
  14: 'COMPLEX64',
  15: 'COMPLEX128',
  16: 'BF16',
  17: 'FLOAT8E4M3FN',
  18: 'FLOAT8E4M3FNUZ',
  19: 'FLOAT8E5M2',
  20: 'FLOAT8E5M2FNUZ',
  23: 'FLOAT4E2M1',
  24: 'UINT2',
  25: 'INT2',
  26: 'FLOAT8E8M0',
};

/** onnxruntime has only some operators of older ones. */
const OLDEST_OPSET = 7;

function ofOldOpset(op: string, opset: string): string {
  return `its operator ${op} is of operator set ${opset}, and onnxruntime runs those from ${OLDEST_OPSET} on. Convert it, in Python: onnx.version_converter.convert_version(onnx.load('old.onnx'), 17)`;
}

function reworded(message: string): string {
  for (const [pattern, text] of WORDS) {
    const found = pattern.exec(message);
    if (found !== null) return text(...found.slice(1).map((group) => group ?? ''));
  }
  return `onnxruntime cannot load it: ${asSentence(onOneLine(message))}`;
}

function onOneLine(message: string): string {
  return message.replace(/\s+/g, ' ').trim();
}
