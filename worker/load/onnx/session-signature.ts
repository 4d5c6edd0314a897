/** The signature of a model, from what its session says of the inputs and outputs. */
import { type Signature, type TensorSpec, shown } from '../../../protocol/values/tensor.js';
import { FREE } from '../../formats/open-inference/signed-inputs.js';
import { AppLoadError } from '../explain-load-error.js';
import type { ModelWords } from './model-words.js';
import { DATATYPES, type Onnxruntime } from './onnxruntime.js';

type Metadata = Onnxruntime.InferenceSession.ValueMetadata;

type Described = Pick<Onnxruntime.InferenceSession, 'inputMetadata' | 'outputMetadata'>;

/**
 * `words`: what the model's file says: its operators tell maps from sequences, its shapes scalars from tensors that may
 * have any number of dimensions. @throws AppLoadError that names an input or output
 * which cannot be used. `leftOut`: names of outputs that are no tensors (sequences and maps), which onnxruntime-node cannot read
 */
export function signatureOfSession(
  path: string,
  session: Described,
  words: ModelWords,
): { signature: Signature; leftOut: readonly string[] } {
  const specs = (all: readonly Metadata[], kind: 'input' | 'output'): TensorSpec[] =>
    all.map((one) => specOf(path, one, kind, words)).filter((spec) => spec !== null);
  const inputs = specs(session.inputMetadata, 'input');
  const noTensor = session.inputMetadata.find(({ isTensor }) => !isTensor);
  if (noTensor !== undefined)
    throw new AppLoadError(
      `${path}: the input ${noTensor.name} is a sequence or a map; only models with tensors as inputs can be served.`,
    );
  const outputs = specs(session.outputMetadata, 'output');
  if (outputs.length === 0)
    throw new AppLoadError(
      `${path}: the model has no output that is a tensor, and only those can be read. ${cureOf(words.operators)}`,
    );
  const leftOut = session.outputMetadata.filter(({ isTensor }) => !isTensor).map(({ name }) => name);
  return { signature: { inputs, outputs }, leftOut };
}

/** A line for the log: what to send, and what comes back. */
export function signatureText({ inputs, outputs }: Signature): string {
  const listed = (specs: readonly TensorSpec[]): string =>
    specs
      .map(
        ({ name, datatype, shape }) =>
          `${name} ${datatype} ${shape === undefined ? 'of any shape' : shown(shape)}`,
      )
      .join(', ');
  return `takes ${listed(inputs) || 'nothing'}; gives ${listed(outputs)}`;
}

/** The warning about outputs that are no tensors. */
export function leftOutText(names: readonly string[], operators: ReadonlySet<string>): string {
  return `Outputs that are no tensors are left out of the answers: ${names.join(', ')}. ${cureOf(operators)}`;
}

function cureOf(operators: ReadonlySet<string>): string {
  return operators.has('ZipMap')
    ? 'They are maps: export the classifier of scikit-learn with the option zipmap=False.'
    : 'Make a tensor of a sequence in the model, such as with ConcatFromSequence.';
}

/** Null for one that is no tensor. @throws AppLoadError */
function specOf(
  path: string,
  metadata: Metadata,
  kind: 'input' | 'output',
  words: ModelWords,
): TensorSpec | null {
  if (!metadata.isTensor) return null;
  const { name, type, shape } = metadata;
  const datatype = DATATYPES.get(type);
  if (datatype === undefined)
    throw new AppLoadError(
      `${path}: the ${kind} ${name} has the type ${type}, which onnxruntime-node cannot pass on. Add a Cast to the model.`,
    );
  // The session has `[]` for both.
  if (shape.length === 0 && !words[`${kind}s`].has(name)) return { name, datatype };
  return { name, datatype, shape: shape.map((size) => (typeof size === 'number' ? size : FREE)) };
}
