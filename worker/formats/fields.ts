/** Collects named values of a form into one object. */

/**
 * Collects the pairs; a repeated name gets an array of its values, in order. Any name, also `__proto__`, becomes an own
 * property.
 */
export function collectFields<Value>(
  pairs: Iterable<readonly [name: string, value: Value]>,
): Record<string, Value | Value[]> {
  const fields = Object.create(null) as Record<string, Value | Value[]>;
  for (const [name, value] of pairs) {
    const before = fields[name];
    if (before === undefined) fields[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else fields[name] = [before, value];
  }
  return { ...fields };
}
