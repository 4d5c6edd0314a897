/**
 * The binary tensor data extension: the elements of a tensor as bytes, little-endian and row-major. The computers that
 * run Node are little-endian, so bytes are the memory of typed arrays.
 */
import {
  elementCount,
  newData,
  shown,
  Tensor,
  type Datatype,
  type TensorData,
} from '../../../protocol/values/tensor.js';
import { isWellFormed, type Refuse } from './elements.js';

/** Bytes of the length before each element of BYTES. */
const LENGTH_BYTES = 4;

/**
 * Makes a tensor of a checked shape from its bytes. Its data is a view of them, unless the elements of a typed array
 * would not be aligned there: then, and if `mayView` is false, it is a copy. @throws the error of `refuse`
 */
export function tensorOfBytes(
  datatype: Datatype,
  shape: readonly number[],
  bytes: Buffer,
  mayView: boolean,
  refuse: Refuse,
): Tensor {
  const own = mayView ? bytes : copyOf(bytes);
  const count = elementCount(shape);
  if (datatype === 'BYTES') return new Tensor(datatype, shape, readByteElements(own, shape, count, refuse));
  const { BYTES_PER_ELEMENT: size } = newData(datatype, 0) as unknown as Uint8Array;
  if (bytes.length !== count * size) {
    const wanted = `${datatype} of the shape ${shown(shape)} takes ${count * size} bytes`;
    throw refuse(`${wanted}, but binary_data_size is ${bytes.length}`);
  }
  if (datatype === 'BOOL') checkBools(bytes, refuse);
  return new Tensor(datatype, shape, typedArrayOf(datatype, own, size) as Uint8Array);
}

function checkBools(bytes: Buffer, refuse: Refuse): void {
  const at = bytes.findIndex((byte) => byte > 1);
  if (at >= 0) throw refuse(`element ${at} is the byte ${bytes[at]}; BOOL has 0 or 1`);
}

function typedArrayOf(datatype: Datatype, bytes: Buffer, size: number): unknown {
  const { buffer, byteOffset, length } = bytes.byteOffset % size === 0 ? bytes : copyOf(bytes);
  const { constructor: TypedArray } = newData(datatype, 0) as unknown as { constructor: typeof Float64Array };
  return new TypedArray(buffer, byteOffset, length / size);
}

/** A copy in memory of its own, which begins where any element may. */
function copyOf(bytes: Buffer): Buffer {
  return Buffer.from(Uint8Array.prototype.slice.call(bytes).buffer);
}

/** Shared by all empty elements: a body may have millions. */
const EMPTY = Buffer.alloc(0);

function readByteElements(bytes: Buffer, shape: readonly number[], count: number, refuse: Refuse): Buffer[] {
  if (count * LENGTH_BYTES > bytes.length) throw tooFewBytes(bytes, shape, count, refuse);
  const elements = new Array<Buffer>(count);
  let at = 0;
  for (let i = 0; i < count; i += 1) {
    const start = at + LENGTH_BYTES;
    at = start <= bytes.length ? start + bytes.readUInt32LE(start - LENGTH_BYTES) : Infinity;
    if (at > bytes.length) throw tooFewBytes(bytes, shape, i, refuse);
    elements[i] = at === start ? EMPTY : bytes.subarray(start, at);
  }
  if (at === bytes.length) return elements;
  throw refuse(`its ${bytes.length} bytes have more than the ${count} elements of the shape ${shown(shape)}`);
}

function tooFewBytes(bytes: Buffer, shape: readonly number[], at: number, refuse: Refuse): Error {
  return refuse(
    `its ${bytes.length} bytes end before the elements of the shape ${shown(shape)} do (element ${at})`,
  );
}

/** The bytes of a tensor: views of its data, but for BYTES. @throws the error of `refuse` for text that is not UTF-8 */
export function bytesOfTensor({ datatype, data }: Tensor, refuse: Refuse): Uint8Array {
  if (datatype === 'BYTES') return writeByteElements(data as TensorData['BYTES'], refuse);
  const { buffer, byteOffset, byteLength } = data as Uint8Array;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function writeByteElements(data: TensorData['BYTES'], refuse: Refuse): Buffer {
  const items = data.map((item, i) => {
    if (typeof item !== 'string') return item;
    if (isWellFormed(item)) return Buffer.from(item);
    throw refuse(`element ${i} has half of a surrogate pair, which UTF-8 cannot carry`);
  });
  const bytes = Buffer.allocUnsafe(items.reduce((sum, item) => sum + LENGTH_BYTES + item.length, 0));
  let at = 0;
  for (const item of items) {
    at = bytes.writeUInt32LE(item.length, at);
    bytes.set(item, at);
    at += item.length;
  }
  return bytes;
}
