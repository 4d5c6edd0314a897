/** Makes plain arrays of the typed ones in data that a schema checks: schemas know lists of numbers, and bytes. */

/**
 * Returns the value with its typed arrays as plain ones, but for bytes: a copy as far as it differs. Leaves a value alone
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
  return isPlain ? convertedObject(value as Readonly<Record<string, unknown>>) : value;
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
