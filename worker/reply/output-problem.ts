/** Finds, after an encoder has failed, the property that made it fail. Slow and thorough; never on the good path. */
import { describeThrown } from '../../protocol/errors.js';
import { notDataOf } from './not-data.js';

/** Returns a BigInt as a number, if no digit is lost. @throws a RangeError otherwise */
export function numberOf(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError('a BigInt beyond 2^53 - 1');
  return number;
}

/** How an encoder treats BigInts. */
export interface BigIntRange {
  fits(value: bigint): boolean;
  readonly limit: string;
}

const JSON_RANGE: BigIntRange = { fits: (value) => Number.isSafeInteger(Number(value)), limit: '2^53 - 1' };

/** Returns a sentence such as `output.items[3].id is a BigInt beyond 2^53 - 1`; null if nothing is found. Never throws. */
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
  const toJson = toJsonOf(value);
  if (toJson !== null) {
    const given = attempt(() => toJson.call(value));
    if (given instanceof Failure) return `${path}.toJSON() throws: ${given.reason}`;
    if (given !== value) return search(given, path, ancestors, range);
  }
  const notData = notDataOf(value);
  if (notData !== null) return `${path} is ${notData[0]}; ${notData[1]}`;
  if (typeof value !== 'object' || value === null) return null;
  if (ancestors.has(value)) return `${path} refers back to an object that contains it`;
  ancestors.add(value);
  for (const [key, child] of childrenOf(value, path)) {
    if (child instanceof Failure) return `${key} throws when read: ${child.reason}`;
    const problem = search(child, key, ancestors, range);
    if (problem !== null) return problem;
  }
  ancestors.delete(value);
  return null;
}

/** Returns the `toJSON` of the object itself or of its class; what it returns stands for the object. */
function toJsonOf(value: unknown): ((this: unknown) => unknown) | null {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return null;
  const { toJSON } = value as { toJSON?: unknown };
  return typeof toJSON === 'function' ? (toJSON as () => unknown) : null;
}

class Failure {
  constructor(readonly reason: string) {}
}

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch (thrown) {
    return new Failure(describeThrown(thrown).message);
  }
}

function* childrenOf(value: object, path: string): Generator<[string, unknown]> {
  if (value instanceof BigInt64Array || value instanceof BigUint64Array || Array.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) yield [`${path}[${i}]`, value[i]];
    return;
  }
  if (ArrayBuffer.isView(value)) return;
  for (const key of Object.keys(value)) {
    yield [propertyPath(path, key), attempt(() => (value as Record<string, unknown>)[key])];
  }
}

function propertyPath(path: string, key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}
