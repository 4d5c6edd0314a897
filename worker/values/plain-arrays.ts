/** Makes plain arrays of the typed ones in data that a schema checks: schemas know lists of numbers, and bytes. */
import { elementCount, Tensor } from '../../protocol/values/tensor.js';

/**
 * Returns the value with its typed arrays and tensors as plain ones, but for bytes: a copy as far as it differs. Leaves a value alone
 * that cannot be walked through, such as a cycle.
 */
export function withPlainArrays(value: unknown): unknown {
  try {
    return converted(value);
  } catch {
    return value;
  }
}

function converted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return value instanceof DataView ? value : Array.from(value as Float32Array);
  if (Array.isArray(value)) return convertedArray(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null;
  if (isPlain) return convertedObject(value as Readonly<Record<string, unknown>>);
  const hasNumbers = value instanceof Tensor && !NO_NUMBERS.has(value.datatype);
  return hasNumbers ? listsOf(value as Tensor) : value;
}

/** Tensors whose data are no numbers: of bytes, and of halves, whose bits they are. */
const NO_NUMBERS: ReadonlySet<unknown> = new Set(['BYTES', 'FP16', 'BF16']);

/** Nested as the shape is. */
function listsOf({ datatype, shape, data }: Tensor): unknown {
  let items = datatype === 'BOOL' ? Array.from(data as Uint8Array, Boolean) : Array.from<unknown>(data);
  for (let axis = shape.length - 1; axis > 0; axis -= 1) {
    const inner = items;
    const size = shape[axis] as number;
    const count = elementCount(shape.slice(0, axis));
    items = Array.from({ length: count }, (_, i) => inner.slice(i * size, (i + 1) * size));
  }
  return shape.length === 0 ? items[0] : items;
}

function convertedArray(array: readonly unknown[]): readonly unknown[] {
  let copy: unknown[] | null = null;
  for (let i = 0; i < array.length; i += 1) {
    const item = converted(array[i]);
    if (item !== array[i]) (copy ??= [...array])[i] = item;
  }
  return copy ?? array;
}

function convertedObject(object: Readonly<Record<string, unknown>>): object {
  let copy: Record<string, unknown> | null = null;
  for (const key of Object.keys(object)) {
    const member = converted(object[key]);
    if (member !== object[key]) (copy ??= { ...object })[key] = member;
  }
  return copy ?? object;
}
