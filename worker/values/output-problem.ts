/** Finds the property that made an encoder fail. Slow and thorough; runs only after a failure. */
import { badOutput, describeThrown, type ServeError } from '../../protocol/errors.js';
import { stackOfApp } from '../process/stack-frame.js';
import { notDataOf } from './not-data.js';

/** Returns a BigInt as a number if it is exact. @throws a RangeError otherwise */
export function numberOf(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError('a BigInt beyond 2^53 - 1');
  return number;
}

/** The range of BigInts that an encoder accepts. */
export interface BigIntRange {
  fits(value: bigint): boolean;
  readonly limit: string;
}

const JSON_RANGE: BigIntRange = { fits: (value) => Number.isSafeInteger(Number(value)), limit: '2^53 - 1' };

/** The reason why a value cannot be encoded. */
interface Problem {
  /** Text for a client, such as `output.items[3].id is a BigInt beyond 2^53 - 1`. */
  readonly text: string;
  /** Set if the app's own code threw when the value was read; its text may contain something that no client may see. */
  readonly failure?: Failure;
}

/**
 * Returns the error of a value for which an encoder has thrown `cause`; its message names the property. Never throws.
 * `format`: the name of the format.
 */
export function invalidOutput(
  format: string,
  value: unknown,
  cause: unknown,
  range = JSON_RANGE,
): ServeError {
  const { text, failure } = findProblem(value, range) ?? unexplained(new Failure(cause));
  const message = `The output is not ${format}: ${text}.`;
  const detail = failure === undefined ? '' : `${message}\n${failure.stack}`;
  return badOutput(message, { detail, cause });
}

function unexplained(failure: Failure): Problem {
  return { text: `encoding it throws ${failure.kind}`, failure };
}

function findProblem(value: unknown, range: BigIntRange): Problem | null {
  try {
    return search(value, 'output', new Set(), range);
  } catch (thrown) {
    return {
      text: thrown instanceof RangeError ? 'output is nested too deeply' : 'output cannot be inspected',
    };
  }
}

function search(value: unknown, path: string, ancestors: Set<object>, range: BigIntRange): Problem | null {
  if (typeof value === 'bigint') {
    if (range.fits(value)) return null;
    return { text: `${path} is a BigInt beyond ${range.limit}; return it as a string` };
  }
  const toJson = toJsonOf(value);
  if (toJson !== null) {
    const given = attempt(() => toJson.call(value));
    if (given instanceof Failure) return { text: `${path}.toJSON() throws ${given.kind}`, failure: given };
    if (given !== value) return search(given, path, ancestors, range);
  }
  const notData = notDataOf(value);
  if (notData !== null) return { text: `${path} is ${notData[0]}; ${notData[1]}` };
  if (typeof value !== 'object' || value === null) return null;
  if (ancestors.has(value)) return { text: `${path} refers back to an object that contains it` };
  ancestors.add(value);
  for (const [key, child] of childrenOf(value, path)) {
    if (child instanceof Failure) return { text: `${key} throws ${child.kind} when read`, failure: child };
    const problem = search(child, key, ancestors, range);
    if (problem !== null) return problem;
  }
  ancestors.delete(value);
  return null;
}

/** Returns the `toJSON` of the object itself or of its class; its result replaces the object. */
function toJsonOf(value: unknown): ((this: unknown) => unknown) | null {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return null;
  const { toJSON } = value as { toJSON?: unknown };
  return typeof toJSON === 'function' ? (toJSON as () => unknown) : null;
}

/** An error that the app's own code threw. */
class Failure {
  /** Its class with an article, such as `a TypeError`. */
  readonly kind: string;
  readonly stack: string;

  constructor(thrown: unknown) {
    this.kind = kindOf(thrown);
    this.stack = stackOfApp(describeThrown(thrown).stack);
  }
}

/** Returns the class of an error, such as `a TypeError`, without any text of the app. Never throws. */
function kindOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return 'a value that is not an Error';
    const { name } = thrown.constructor;
    if (!/^[A-Za-z_$][\w$]{0,99}$/.test(name)) return 'an Error';
    return `${/^[AEIO]/i.test(name) ? 'an' : 'a'} ${name}`;
  } catch {
    return 'a value that cannot be shown';
  }
}

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch (thrown) {
    return new Failure(thrown);
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

/** Returns the place of the first NaN or infinity in a value that could be encoded. Never throws. */
export function placeOfNotFinite(value: unknown): string {
  try {
    return searchNotFinite(value, 'output') ?? UNKNOWN_PLACE;
  } catch {
    return UNKNOWN_PLACE;
  }
}

/** A number that a `toJSON` of the app has made has no place in its output. */
const UNKNOWN_PLACE = 'a number in the output';

function searchNotFinite(value: unknown, path: string): string | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : path;
  if (typeof value !== 'object' || value === null) return null;
  const isTyped = ArrayBuffer.isView(value) && !(value instanceof DataView);
  const children = isTyped
    ? Object.entries(value).map(([i, item]) => [`${path}[${i}]`, item] as const)
    : childrenOf(value, path);
  for (const [place, child] of children) {
    const found = searchNotFinite(child, place);
    if (found !== null) return found;
  }
  return null;
}
