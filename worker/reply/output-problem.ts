/** Finds, after an encoder has failed, the property that made it fail. Slow and thorough; never on the good path. */

/** A BigInt as a number, if no digit is lost. @throws a RangeError otherwise */
export function numberOf(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError('a BigInt beyond 2^53 - 1');
  return number;
}

/** What an encoder does with BigInts. */
export interface BigIntRange {
  fits(value: bigint): boolean;
  readonly limit: string;
}

const JSON_RANGE: BigIntRange = { fits: (value) => Number.isSafeInteger(Number(value)), limit: '2^53 - 1' };

/** A sentence such as `output.items[3].id is a BigInt beyond 2^53 - 1`; null if nothing is found. Never throws. */
export function findProblem(value: unknown, range = JSON_RANGE): string | null {
  try {
    return search(value, 'output', new Set(), range);
  } catch (thrown) {
    return thrown instanceof RangeError ? 'output is nested too deeply' : 'output cannot be inspected';
  }
}

function search(value: unknown, path: string, ancestors: Set<object>, range: BigIntRange): string | null {
  if (typeof value === 'bigint') {
    return range.fits(value) ? null : `${path} is a BigInt beyond ${range.limit}; return it as a string`;
  }
  if (typeof value !== 'object' || value === null) return null;
  if (ancestors.has(value)) return `${path} refers back to an object that contains it`;
  if (value instanceof Promise) return `${path} is a promise; await it`;
  ancestors.add(value);
  for (const [key, child] of childrenOf(value, path)) {
    if (child instanceof GetterFailure) return `${key} throws when read: ${child.reason}`;
    const problem = search(child, key, ancestors, range);
    if (problem !== null) return problem;
  }
  ancestors.delete(value);
  return null;
}

class GetterFailure {
  constructor(readonly reason: string) {}
}

function* childrenOf(value: object, path: string): Generator<[string, unknown]> {
  if (value instanceof BigInt64Array || value instanceof BigUint64Array || Array.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) yield [`${path}[${i}]`, value[i]];
    return;
  }
  if (ArrayBuffer.isView(value)) return;
  if (value instanceof Map) {
    for (const [key, child] of value) yield [`${path}.${String(key)}`, child];
    return;
  }
  if (value instanceof Set) {
    let i = 0;
    for (const child of value) yield [`${path}[${i++}]`, child];
    return;
  }
  for (const key of Object.keys(value)) yield [propertyPath(path, key), read(value, key)];
}

function read(value: object, key: string): unknown {
  try {
    return (value as Record<string, unknown>)[key];
  } catch (thrown) {
    return new GetterFailure(thrown instanceof Error ? thrown.message : 'it throws');
  }
}

function propertyPath(path: string, key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}
