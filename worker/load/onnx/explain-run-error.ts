/**
 * Explains the error of a run. A model without code has no author's secrets, so the client gets the words of onnxruntime,
 * without the places in its source.
 */
import { badBody, describeThrown, ServeError } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import { shown } from '../../../protocol/values/tensor.js';
import { isOutOfMemory } from '../../failures/outlook.js';
import { stackOfApp } from '../../process/stack-frame.js';
import type { Onnxruntime } from './onnxruntime.js';
import type { Tensors } from './rows.js';

type Metadata = Onnxruntime.InferenceSession['inputMetadata'];

/** A SERVE_BAD_BODY if the inputs are to blame, else a SERVE_INFERENCE_FAILED; what was thrown is its cause. */
export function explainRunError(thrown: unknown, tensors: Tensors, metadata: Metadata): ServeError {
  const { message, stack } = describeThrown(thrown);
  const { node, status } = partsOf(message.slice(0, MAX_READ_CHARS));
  const text = asSentence((node === '' ? status : `${node}: ${status}`).slice(0, MAX_CHARS));
  if (ABOUT_INPUTS.test(message) && !ABOUT_MACHINE.test(status)) {
    const why = contradiction(tensors, metadata) ?? `The model cannot run this input: ${text}`;
    return badBody(why, thrown);
  }
  const kind = isOutOfMemory(thrown) ? 'out-of-memory' : 'prediction';
  const options = { cause: thrown, kind, detail: stackOfApp(stack) } as const;
  return new ServeError('SERVE_INFERENCE_FAILED', `The model failed on this call: ${text}`, options);
}

/**
 * The beginning of an error of a node, or of the check before the first of them. A model that could be loaded fails there
 * for its input, in any words (a Cast says `stod`), or for the machine.
 */
const ABOUT_INPUTS =
  /^(?:Non-zero status code returned while running|Got invalid dimensions|Invalid rank|Unexpected input)/;

/** Memory, and devices with their libraries. */
const ABOUT_MACHINE =
  /alloc|memory|CUDA|CUDNN|CUBLAS|CUFFT|CURAND|TensorRT|\bHIP\b|ROCm|GPU|Dawn|Direct(?:ML|3D)|CoreML|\bdevice|driver/i;

/**
 * Two dimensions of the same symbol that have different sizes; null if there are none. Looked for only after an error,
 * because exporters also write one symbol for dimensions that may differ.
 */
function contradiction(tensors: Tensors, metadata: Metadata): string | null {
  const sizes = new Map<string, { readonly name: string; readonly size: number }>();
  for (const input of metadata) {
    if (!input.isTensor) continue;
    for (const [i, symbol] of input.shape.entries()) {
      const size = tensors[input.name]?.shape[i];
      if (typeof symbol !== 'string' || symbol === '' || size === undefined) continue;
      const before = sizes.get(symbol);
      if (before === undefined) sizes.set(symbol, { name: input.name, size });
      else if (before.size !== size)
        return `Input ${shown(input.name)}: its dimension ${shown(symbol)} is ${size}, but that of ${shown(before.name)} is ${before.size}; the model wants them to be the same.`;
    }
  }
  return null;
}

/** The innermost node, if there is one, and what onnxruntime says of it in plain words. */
function partsOf(message: string): { readonly node: string; readonly status: string } {
  const [, op = '', name = '', given = message] = NODE.exec(message) ?? [];
  const text = NOT_FOR_CLIENTS.reduce((rest, pattern) => rest.replace(pattern, ''), given);
  const line = text.replace(/\s+/g, ' ').trim();
  const status = line.replace(CONDITION, '') || 'it gives no reason';
  const node = name === '' ? op : `${op} ${shown(name)}`;
  return { node, status: NO_NUMBER.test(status) ? `a text is not a number in range (${status})` : status };
}

/** Greedy: the node of a Loop or an If is behind it. */
const NODE =
  /^[\s\S]*Non-zero status code returned while running (\S+) node\. ?Name:'([^'\n]*)' ?Status Message: ([\s\S]*)$/;

const NOT_FOR_CLIENTS = [
  // A file of the source with its line, and the signature of the function there.
  /(?:[\w.+:-]*[\\/])+[\w.+-]+\.\w+:\d+ (?:[^()\n]*\([^()\n]*\)(?: const)?(?: \[(?:with )?\w+ = [^\]\n]*\])?|\S+)/g,
  // The same, with the bare names of both.
  /\b\w+\.(?:h|cc|cpp|cu|cuh):\d+ \w+/g,
  /\[ONNXRuntimeError\] : \d+ : \w+ : /g,
  // Where a call of CUDA was made: the host, and the file again.
  / ; GPU=[\s\S]*/,
];

/** The condition in C++ that did not hold, before what it means. */
const CONDITION = /^.* was false\. ?(?=\S)/;

/** A Cast of texts only names the function of C++ that refused one. */
const NO_NUMBER = /^sto[dfilu]{1,3}$/;

/** More is not read: the text of an input may be in it. */
const MAX_READ_CHARS = 2000;

const MAX_CHARS = 500;
