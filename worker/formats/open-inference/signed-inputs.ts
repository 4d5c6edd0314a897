/** Inputs of an app that has a signature: checked against it, or read without a head, because it says all. */
import { badBody } from '../../../protocol/errors.js';
import {
  type Fields,
  type Signature,
  type TensorSpec,
  elementCount,
  newData,
  shown,
  type Datatype,
  type Tensor,
} from '../../../protocol/values/tensor.js';
import { refuseInput, type Refuse } from './elements.js';
import { tensorOfBytes } from './raw-data.js';

type Inputs = Readonly<Record<string, Tensor>>;

/** @throws SERVE_BAD_BODY that names the tensor, what the app wants and what it got */
export function checkInputs(inputs: Inputs, signature: Signature): void {
  checkNames(inputs, signature);
  for (const spec of signature.inputs) {
    const tensor = inputs[spec.name] as Tensor;
    if (fits(tensor, spec)) continue;
    const got = `${tensor.datatype} of the shape ${shown(tensor.shape)}`;
    throw refuseInput(spec.name)(`the model wants ${textOf(spec)}, but got ${got}`);
  }
}

/** Checks that there is a value for each input, and no other. @throws SERVE_BAD_BODY that names the input */
export function checkNames(values: Fields, { inputs: specs }: Signature): void {
  const missing = specs.find(({ name }) => !Object.hasOwn(values, name));
  if (missing !== undefined)
    throw badBody(`Input ${shown(missing.name)} is missing; the model wants ${textOf(missing)}.`);
  const unknown = Object.keys(values).find((name) => !specs.some((spec) => spec.name === name));
  if (unknown === undefined) return;
  const names = specs.map(({ name }) => shown(name)).join(', ');
  throw badBody(`The model has no input ${shown(unknown)}; its inputs are ${names}.`);
}

function fits({ datatype, shape }: Tensor, spec: TensorSpec): boolean {
  return (
    datatype === spec.datatype &&
    (spec.shape === undefined ||
      isScalar(shape, spec) ||
      (shape.length === spec.shape.length &&
        spec.shape.every((size, i) => size === FREE || size === shape[i])))
  );
}

/** Whether this is the shape of one element, for an input that is a scalar: it may have any dimensions around it. */
export function isScalar(shape: readonly number[], spec: TensorSpec): boolean {
  return spec.shape?.length === 0 && elementCount(shape) === 1;
}

/** The size of a dimension that may have any. */
export const FREE = -1;

/** The tensors that an input may be, for an error text. */
export function textOf({ datatype, shape }: TensorSpec): string {
  return shape === undefined ? `${datatype} of any shape` : `${datatype} of the shape ${shown(shape)}`;
}

/**
 * Reads a whole body as the one input of a model (the header `Inference-Header-Content-Length: 0`). A BYTES input is
 * one element, without its length. @throws SERVE_BAD_BODY
 */
export function rawInput(body: Buffer, signature: Signature | null, mayView: boolean): Inputs {
  const [spec, second] = signature?.inputs ?? [];
  if (spec === undefined || second !== undefined) {
    const problem =
      signature === null ? 'this app has no signature' : `this model has ${signature.inputs.length}`;
    throw badBody(
      `Inference-Header-Content-Length is 0, so the body must be the bytes of the one input of a model, but ${problem}.`,
    );
  }
  return { [spec.name]: rawTensor(spec, body, mayView, refuseInput(spec.name)) };
}

/** The cure for an input that does not say its shape. */
export const SEND_THE_SHAPE = 'send the shape, as the Open Inference Protocol V2 does (/v2)';

/** Reads bytes as one input, of which the signature says the rest. @throws the error of `refuse` */
export function rawTensor(spec: TensorSpec, body: Buffer, mayView: boolean, refuse: Refuse): Tensor {
  const isText = spec.datatype === 'BYTES';
  const bytes = isText ? oneElement(body) : body;
  const { shape: wanted } = spec;
  if (wanted === undefined) throw refuse(`${body.length} bytes may have any shape; ${SEND_THE_SHAPE}`);
  if (!isText && wanted.slice(1).filter((size) => size === FREE).length > 1)
    throw refuse(`${body.length} bytes may have several shapes of ${textOf(spec)}; ${SEND_THE_SHAPE}`);
  const shape = rawShape(spec.datatype, wanted, body.length);
  if (shape === null) throw refuse(`${body.length} bytes are not ${textOf(spec)}`);
  return tensorOfBytes(spec.datatype, shape, bytes, mayView, refuse);
}

function oneElement(body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  return Buffer.concat([length, body]);
}

/**
 * The shape with its free dimensions set: the last by the number of bytes, the first to 1; one element has a size of 1 in
 * all. Null if none fits.
 */
function rawShape(datatype: Datatype, shape: readonly number[], bytes: number): number[] | null {
  const free = shape.lastIndexOf(FREE);
  const known = shape.map((size) => (size === FREE ? 1 : size));
  const size =
    datatype === 'BYTES' ? bytes : (newData(datatype, 0) as unknown as Uint8Array).BYTES_PER_ELEMENT;
  const count = bytes === 0 && datatype === 'BYTES' ? 1 : bytes / size;
  const rest = count / elementCount(known);
  if (free >= 0) known[free] = rest;
  return Number.isInteger(rest) && (free >= 0 || rest === 1) ? known : null;
}
