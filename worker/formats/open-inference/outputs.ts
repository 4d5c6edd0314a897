/** Turns what an app returned into tensors by name. */
import { badOutput } from '../../../protocol/errors.js';
import {
  DATATYPE_OF_ARRAY,
  type Signature,
  type TensorSpec,
  elementCount,
  isDatatype,
  kindOf,
  problemOfShape,
  problemOfTensor,
  shown,
  Tensor,
  typedArrayName,
  type Datatype,
} from '../../../protocol/values/tensor.js';
import { notDataOf } from '../../values/not-data.js';
import type { Refuse } from './elements.js';
import { shapeOfLists, tensorOfList } from './nested-data.js';
import { FREE } from './signed-inputs.js';

/**
 * An object has an output for each property; any other value is one output, without a name: that of a signature of
 * one, else `output`. @throws SERVE_OUTPUT_INVALID that names the output
 */
export function outputsOf(value: unknown, signature: Signature | null): ReadonlyMap<string, Tensor> {
  const specs = signature?.outputs ?? [];
  const [only] = specs;
  if (isOneOutput(value)) {
    const spec = specs.length === 1 ? only : undefined;
    const name = spec?.name ?? 'output';
    return new Map([[name, tensorOf(value, spec, refuseFor(name))]]);
  }
  checkObject(value);
  const tensors = Object.entries(value).map(([name, item]) => {
    const spec = specs.find((one) => one.name === name);
    return [name, tensorOf(item, spec, refuseFor(name))] as const;
  });
  return new Map(specs.length > 1 ? inOrderOf(specs, tensors) : tensors);
}

/** Sorts outputs as the signature has them, because an object puts names that are numbers first; others follow. */
function inOrderOf(
  specs: readonly TensorSpec[],
  tensors: readonly (readonly [name: string, tensor: Tensor])[],
): typeof tensors {
  const places = new Map(specs.map(({ name }, i) => [name, i]));
  const placeOf = (name: string): number => places.get(name) ?? specs.length;
  return [...tensors].sort(([one], [other]) => placeOf(one) - placeOf(other));
}

function isOneOutput(value: unknown): boolean {
  if (value === null || value === undefined) return false;
  return (
    typeof value !== 'object' ||
    Array.isArray(value) ||
    typedArrayName(value) !== undefined ||
    isTensor(value)
  );
}

function checkObject(value: unknown): asserts value is object {
  const notData = notDataOf(value);
  if (notData !== null) throw badOutput(`The output is ${notData[0]}; ${notData[1]}.`);
  if (typeof value === 'object' && value !== null && Object.keys(value).length > 0) return;
  const kind = value === null || value === undefined ? String(value) : 'an object without properties';
  throw badOutput(
    `The output is ${kind}; return tensors by name, such as { scores: new Tensor('FP32', [2], data) }.`,
  );
}

function refuseFor(name: string): Refuse {
  return (text) => badOutput(`Output ${shown(name)}: ${text}.`);
}

interface TensorFields {
  readonly datatype: string;
  readonly shape: unknown;
  readonly data: unknown;
}

function isTensor(value: unknown): value is TensorFields {
  if (typeof value !== 'object' || value === null) return false;
  const { datatype, shape, data } = value as Partial<TensorFields>;
  return typeof datatype === 'string' && shape !== undefined && data !== undefined;
}

function tensorOf(value: unknown, spec: TensorSpec | undefined, refuse: Refuse): Tensor {
  if (isTensor(value)) return tensorOfFields(value, refuse);
  if (spec?.datatype === 'BYTES' && value instanceof Uint8Array) return tensorOfScalar(value, spec, refuse);
  const name = typedArrayName(value);
  if (name !== undefined) return tensorOfTypedArray(name, value as ArrayLike<unknown>, spec, refuse);
  if (Array.isArray(value)) return tensorOfLists(value as readonly unknown[], spec, refuse);
  return tensorOfScalar(value, spec, refuse);
}

/** A Tensor, which may have changed since it was made, or a plain object; the data of that may also be a list. */
function tensorOfFields({ datatype, shape, data }: TensorFields, refuse: Refuse): Tensor {
  const isList = isDatatype(datatype) && datatype !== 'BYTES' && Array.isArray(data);
  const problem = isList ? problemOfShape(shape) : problemOfTensor(datatype, shape, data);
  if (problem !== null) throw refuse(problem);
  const [type, sizes] = [datatype as Datatype, shape as readonly number[]];
  return isList ? tensorOfList(type, sizes, data, refuse) : new Tensor(type, sizes, data as Uint8Array);
}

function tensorOfTypedArray(
  name: string,
  value: ArrayLike<unknown>,
  spec: TensorSpec | undefined,
  refuse: Refuse,
): Tensor {
  const shape = shapeBySpec(spec, value.length);
  const data = (name === 'Uint8ClampedArray' ? Uint8Array.from(value as Uint8Array) : value) as Uint8Array;
  if (spec !== undefined && problemOfTensor(spec.datatype, shape, data) === null)
    return new Tensor(spec.datatype, shape, data);
  const datatype = DATATYPE_OF_ARRAY[name];
  if (datatype === undefined) throw refuse(`${kindOf(value)} is not supported`);
  return new Tensor(datatype, shape, data);
}

/** The shape that the signature gives so many elements, if it gives one. */
function shapeBySpec(spec: TensorSpec | undefined, count: number): readonly number[] {
  if (spec?.shape === undefined) return [count];
  const { shape } = spec;
  const free = shape.filter((size) => size === FREE).length;
  const rest = count / elementCount(shape.filter((size) => size !== FREE));
  if (free === 0) return rest === 1 ? shape : [count];
  const isOne = free === 1 && Number.isSafeInteger(rest);
  return isOne ? shape.map((size) => (size === FREE ? rest : size)) : [count];
}

function tensorOfLists(value: readonly unknown[], spec: TensorSpec | undefined, refuse: Refuse): Tensor {
  const [shape, item] = shapeOfLists(value, refuse);
  const row = typedArrayName(item);
  // A list of Uint8Arrays is a list of BYTES, unless the signature says otherwise.
  const isRow = row !== undefined && !(row === 'Uint8Array' && (spec?.datatype ?? 'BYTES') === 'BYTES');
  if (isRow) shape.push((item as ArrayLike<unknown>).length);
  const datatype = spec?.datatype ?? (isRow ? DATATYPE_OF_ARRAY[row] : datatypeOf(item, refuse));
  if (datatype === undefined) throw refuse(`${kindOf(item)} is not supported`);
  return tensorOfList(datatype, shape, value, refuse);
}

function tensorOfScalar(value: unknown, spec: TensorSpec | undefined, refuse: Refuse): Tensor {
  const shape = spec?.shape?.length === 0 ? [] : [1];
  return tensorOfList(spec?.datatype ?? datatypeOf(value, refuse), shape, [value], refuse);
}

/** The datatype of a list without a signature, by its first element. */
function datatypeOf(element: unknown, refuse: Refuse): Datatype {
  if (element instanceof Uint8Array) return 'BYTES';
  switch (typeof element) {
    case 'number':
    case 'undefined': // the list is empty
      return 'FP64';
    case 'bigint':
      return 'INT64';
    case 'boolean':
      return 'BOOL';
    case 'string':
      return 'BYTES';
    default:
      throw refuse(
        `${kindOf(element)} is not a tensor; return a Tensor, a typed array, or lists of numbers, booleans or texts`,
      );
  }
}
