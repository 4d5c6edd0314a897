/** The inputs of one call as tensors by name, checked before native code gets them, from what a format has read. */
import { badBody } from '../../../protocol/errors.js';
import {
  type Fields,
  type Signature,
  type TensorSpec,
  isObject,
  kindOf,
  shown,
  Tensor,
} from '../../../protocol/values/tensor.js';
import { refuseInput, type Refuse } from '../../formats/open-inference/elements.js';
import { shapeOfLists, tensorOfList } from '../../formats/open-inference/nested-data.js';
import {
  checkInputs,
  checkNames,
  FREE,
  isScalar,
  rawTensor,
  SEND_THE_SHAPE,
  textOf,
} from '../../formats/open-inference/signed-inputs.js';
import { withWholeTexts } from './onnxruntime.js';
import { mapTensors, type Tensors } from './rows.js';

export interface CallInputs {
  readonly tensors: Tensors;
  /** They came as tensors, so the outputs leave as such; else as lists. */
  readonly areTensors: boolean;
  /** They came without the dimension of the batch; the outputs leave without it. */
  readonly isRow: boolean;
}

/**
 * `input` has a value for each name; a model of one input may also get the value alone. `isJson`: it was JSON, which has no
 * infinity: one in a list stands for a number that was too large. @throws SERVE_BAD_BODY that names the tensor, what the
 * model wants and what it got
 */
export function readCallInputs(input: unknown, signature: Signature, isJson = false): CallInputs {
  const values = valuesByName(input, signature);
  checkNames(values, signature);
  const read = signature.inputs.map(
    (spec) => [spec.name, readTensor(values[spec.name], spec, isJson)] as const,
  );
  const tensors = Object.fromEntries(read.map(([name, { tensor }]) => [name, tensor]));
  checkInputs(tensors, signature);
  return {
    tensors: mapTensors(tensors, (tensor, name) => withWholeTexts(tensor, refuseInput(name))),
    areTensors: read.some(([, { isTensor }]) => isTensor),
    isRow: read.length > 0 && read.every(([, { isRow }]) => isRow),
  };
}

function valuesByName(input: unknown, { inputs }: Signature): Fields {
  const [only] = inputs;
  if (isObject(input) && !ArrayBuffer.isView(input) && !(input instanceof Tensor)) return input;
  if (only !== undefined && inputs.length === 1 && input !== null) return { [only.name]: input };
  const example = JSON.stringify(Object.fromEntries(inputs.map(({ name }) => [name, []])));
  const got = input === null ? 'is empty' : `is ${kindOf(input)}`;
  throw badBody(`The body ${got}; the model wants a value for each input: ${example.replaceAll('[]', '…')}.`);
}

function readTensor(
  value: unknown,
  spec: TensorSpec,
  isJson: boolean,
): { readonly tensor: Tensor; readonly isTensor: boolean; readonly isRow: boolean } {
  if (value instanceof Tensor) return { tensor: value as Tensor, isTensor: true, isRow: false };
  const refuse = refuseInput(spec.name);
  if (value instanceof Uint8Array && spec.datatype !== 'BYTES')
    return { tensor: rawTensor(spec, Buffer.from(value), false, refuse), isTensor: false, isRow: false };
  const [given] = shapeOfLists(value, refuse);
  const whole = wholeShape(given, spec);
  const row = whole === null && isBatch(spec.shape?.[0]) ? wholeShape([1, ...given], spec) : null;
  const shape = whole ?? row;
  const isNoList = given.length === 0;
  if (shape === null)
    throw refuse(
      `the model wants ${textOf(spec)}, but got ${isNoList ? kindOf(value) : `lists of the shape ${shown(given)}`}`,
    );
  if (shape.includes(FREE))
    throw refuse(`an empty list does not say the sizes behind it in ${textOf(spec)}; ${SEND_THE_SHAPE}`);
  const isRow = row !== null;
  const tensor = tensorOfList(spec.datatype, shape, isRow || isNoList ? [value] : value, refuse);
  if (isJson) checkFinite(tensor, refuse);
  return { tensor, isTensor: false, isRow };
}

function checkFinite({ datatype, data }: Tensor, refuse: Refuse): void {
  if (!/^FP/.test(datatype)) return;
  const isInfinite = datatype === 'FP16' ? isInfinityOfHalf : isInfinity;
  const at = (data as Float32Array).findIndex(isInfinite);
  if (at >= 0) throw refuse(`element ${at} is beyond the largest number`);
}

function isInfinity(value: number): boolean {
  return Math.abs(value) === Infinity;
}

function isInfinityOfHalf(bits: number): boolean {
  return (bits & 0x7fff) === 0x7c00;
}

/** Whether a first dimension of this size may be that of a batch. */
function isBatch(size: number | undefined): boolean {
  return size === FREE || size === 1;
}

/**
 * The shape of lists as the input has it: an empty list ends the nesting, and the signature has the sizes behind it, which
 * may be free. Null if the lists are not nested like that.
 */
function wholeShape(given: readonly number[], spec: TensorSpec): readonly number[] | null {
  const { shape } = spec;
  if (shape === undefined || isScalar(given, spec)) return given;
  const rest = shape.slice(given.length);
  const fits = given.every((size, i) => shape[i] === FREE || shape[i] === size);
  return fits && (rest.length === 0 || given.at(-1) === 0) ? [...given, ...rest] : null;
}
