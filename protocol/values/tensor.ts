/**
 * Tensors as apps receive and return them. The datatypes are those of the Open Inference Protocol V2, and Triton's
 * BF16.
 */

/**
 * The data of a tensor in row-major order, by its datatype.
 * @example
 * const pixels: TensorData['UINT8'] = Uint8Array.of(0, 128, 255);
 */
export interface TensorData {
  /** 1 for true, 0 for false. */
  BOOL: Uint8Array;
  UINT8: Uint8Array;
  UINT16: Uint16Array;
  UINT32: Uint32Array;
  UINT64: BigUint64Array;
  INT8: Int8Array;
  INT16: Int16Array;
  INT32: Int32Array;
  INT64: BigInt64Array;
  /** The 16 bits of each number. A `Float16Array`, in a Node that has it, is taken too. */
  FP16: Uint16Array;
  /** The 16 bits of each number: the upper half of its FP32. */
  BF16: Uint16Array;
  FP32: Float32Array;
  FP64: Float64Array;
  /** Any bytes, of any length; texts stand for their UTF-8. The tensors of a request have Buffers. */
  BYTES: readonly (Uint8Array | string)[];
}

/**
 * A datatype of the Open Inference Protocol.
 * @example
 * const datatype: Datatype = 'FP32';
 */
export type Datatype = keyof TensorData;

/** The class that holds the elements of each datatype. */
const ARRAYS: Readonly<Record<Datatype, new (count: number) => ArrayLike<unknown>>> = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP16: Uint16Array,
  BF16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
  BYTES: Array,
};

export const DATATYPES = Object.keys(ARRAYS) as readonly Datatype[];

export function isDatatype(value: unknown): value is Datatype {
  return typeof value === 'string' && Object.hasOwn(ARRAYS, value);
}

/** The data of a tensor with `count` elements, of which none is set. */
export function newData(datatype: Datatype, count: number): ArrayLike<unknown> {
  return new ARRAYS[datatype](count);
}

/** The limit of numpy before version 2. */
export const MAX_DIMENSIONS = 32;

/**
 * `Float16Array`, of which this language level has no type.
 * @example
 * const half = (data: Float16Data) => new Tensor('FP16', [data.length], data);
 */
export interface Float16Data extends ArrayBufferView {
  readonly length: number;
  readonly [Symbol.toStringTag]: 'Float16Array';
}

/**
 * A tensor. Apps get one for each input of a call in the Open Inference Protocol, and may return them by name. A plain
 * object with the same three fields is as good.
 * @example
 * export const inference = ({ image }: { image: Tensor<'FP32'> }) => ({
 *   mean: new Tensor('FP32', [1], Float32Array.of(image.data.reduce((a, b) => a + b) / image.data.length)),
 * });
 */
export class Tensor<D extends Datatype = Datatype> {
  readonly datatype: D;
  /** The size of each dimension; `[]` for a single element. */
  readonly shape: readonly number[];
  /** In row-major order, one element after the other. It is not copied. */
  readonly data: TensorData[D];

  /** @throws TypeError if the datatype is unknown, or shape or data do not match it */
  constructor(
    datatype: D,
    shape: readonly number[],
    data: TensorData[D] | (D extends 'FP16' ? Float16Data : never),
  ) {
    const problem = problemOfTensor(datatype, shape, data);
    if (problem !== null) throw new TypeError(`new Tensor(datatype, shape, data): ${problem}`);
    this.datatype = datatype;
    this.shape = [...shape];
    this.data = (
      typedArrayName(data) === 'Float16Array' ? bitsOf(data as Float16Data) : data
    ) as TensorData[D];
  }
}

/**
 * A tensor of any datatype; a test of `datatype` tells TypeScript the type of `data`.
 * @example
 * const sum = (tensor: AnyTensor) => (tensor.datatype === 'FP32' ? tensor.data.reduce((a, b) => a + b) : 0);
 */
export type AnyTensor = { [D in Datatype]: Tensor<D> }[Datatype];

/**
 * One input or output of an app that describes them.
 * @example
 * const image: TensorSpec = { name: 'image', datatype: 'FP32', shape: [-1, 1, 28, 28] };
 */
export interface TensorSpec {
  readonly name: string;
  readonly datatype: Datatype;
  /** The size of each dimension; −1 for one that may have any size. Left out: nobody knows how many dimensions there are. */
  readonly shape?: readonly number[];
}

/**
 * The signature of an app: the names, datatypes and shapes of its inputs and outputs.
 * @example
 * export const signature: Signature = {
 *   inputs: [{ name: 'image', datatype: 'FP32', shape: [-1, 1, 28, 28] }],
 *   outputs: [{ name: 'label', datatype: 'INT64', shape: [-1] }],
 * };
 */
export interface Signature {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}

function bitsOf({ buffer, byteOffset, length }: Float16Data): Uint16Array {
  return new Uint16Array(buffer, byteOffset, length);
}

/** Describes the first thing that keeps these values from being a tensor; null if they are one. */
export function problemOfTensor(datatype: unknown, shape: unknown, data: unknown): string | null {
  if (!isDatatype(datatype)) return `${shown(datatype)} is not a datatype; there are ${DATATYPES.join(', ')}`;
  const problem = problemOfShape(shape);
  if (problem !== null) return problem;
  const wanted = ARRAYS[datatype].name;
  const given = typedArrayName(data) ?? (Array.isArray(data) ? 'Array' : '');
  if (given !== wanted && !(datatype === 'FP16' && given === 'Float16Array')) {
    const meaning = datatype === 'FP16' || datatype === 'BF16' ? ' of their bits' : '';
    const what = wanted === 'Array' ? 'an array of Uint8Arrays or texts' : `${withArticle(wanted)}${meaning}`;
    return `data of ${datatype} must be ${what}, not ${kindOf(data)}`;
  }
  const { length } = data as ArrayLike<unknown>;
  const count = elementCount(shape as readonly number[]);
  if (length !== count) return `${countText(shape as readonly number[])}, but data has ${length}`;
  return datatype === 'BYTES' ? problemOfBytes(data as readonly unknown[]) : null;
}

function problemOfBytes(data: readonly unknown[]): string | null {
  const at = data.findIndex((item) => typeof item !== 'string' && !(item instanceof Uint8Array));
  return at < 0 ? null : `element ${at} of BYTES must be a Uint8Array or text, not ${kindOf(data[at])}`;
}

/** Describes a shape that no tensor can have; null for any other. */
export function problemOfShape(shape: unknown): string | null {
  if (!Array.isArray(shape)) return `the shape must be a list of whole numbers, not ${kindOf(shape)}`;
  if (shape.length > MAX_DIMENSIONS)
    return `the shape has ${shape.length} dimensions; ${MAX_DIMENSIONS} are allowed`;
  const wrong: unknown = shape.find((size: unknown) => !Number.isSafeInteger(size) || (size as number) < 0);
  if (wrong !== undefined || shape.includes(undefined))
    return `the shape must have whole numbers from 0, not ${shown(wrong)}`;
  const count = elementCount((shape as readonly number[]).filter((size) => size > 0));
  return Number.isSafeInteger(count)
    ? null
    : `the shape ${shown(shape)} has more elements than can be counted`;
}

/** The product of the sizes. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((count, size) => count * size, 1);
}

/** The datatype of a typed array, by its class, if nothing says another that it may hold. */
export const DATATYPE_OF_ARRAY: Readonly<Record<string, Datatype>> = {
  Uint8Array: 'UINT8',
  Uint8ClampedArray: 'UINT8',
  Uint16Array: 'UINT16',
  Uint32Array: 'UINT32',
  BigUint64Array: 'UINT64',
  Int8Array: 'INT8',
  Int16Array: 'INT16',
  Int32Array: 'INT32',
  BigInt64Array: 'INT64',
  Float16Array: 'FP16',
  Float32Array: 'FP32',
  Float64Array: 'FP64',
};

/** The name of a typed array, also for a Buffer or another subclass; undefined for anything else. */
export function typedArrayName(value: unknown): string | undefined {
  if (!ArrayBuffer.isView(value) || value instanceof DataView) return undefined;
  return (value as unknown as { readonly [Symbol.toStringTag]: string })[Symbol.toStringTag];
}

/** The fields of an object, of any types. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether the value is an object that may have fields, and no list. */
export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The kind of a value, for an error text, such as `a Float64Array`. */
export function kindOf(value: unknown): string {
  const name = typedArrayName(value);
  if (name !== undefined) return withArticle(name);
  if (Array.isArray(value)) return 'a list';
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return 'text';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'bigint') return `the BigInt ${String(value).slice(0, MAX_SHOWN_CHARS)}`;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `a ${typeof value}`;
}

function withArticle(name: string): string {
  return `${/^[AEI]/.test(name) ? 'an' : 'a'} ${name}`;
}

/** The beginning of a sentence on a shape, such as `the shape [2, 3] has 6 elements`. */
export function countText(shape: readonly number[]): string {
  const count = elementCount(shape);
  return `the shape ${shown(shape)} has ${count} ${count === 1 ? 'element' : 'elements'}`;
}

/** A wrong value in an error text, cut short. */
export function shown(value: unknown): string {
  if (!Array.isArray(value) || value.length > MAX_DIMENSIONS) return shownItem(value);
  return `[${value.map((item) => shownItem(item)).join(', ')}]`;
}

function shownItem(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, MAX_SHOWN_CHARS));
  if (typeof value !== 'number' && typeof value !== 'bigint') return kindOf(value);
  return String(value).slice(0, MAX_SHOWN_CHARS);
}

const MAX_SHOWN_CHARS = 60;
