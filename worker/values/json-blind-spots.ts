/**
 * Finds values that JSON.stringify drops silently and that the conversions of `json-conversions.ts` do not catch:
 * symbols and iterables without properties have no toJSON that would be called, and the result of a toJSON is not
 * converted again. On the way it notes numbers that JSON does not have.
 */
import { isTrusted, noteNotFinite } from './json-conversions.js';
import { isBareIterable } from './not-data.js';

/**
 * Whether `value` may contain something that `lookAgain` must check; false for nearly all outputs, and sometimes true
 * without need. Takes about a fourteenth of the time of `JSON.stringify`, more for objects of thousands of keys
 * (bench/json.ts).
 */
export function hasBlindSpot(value: unknown): boolean {
  if (typeof value === 'symbol') return true;
  if (typeof value === 'number' && !Number.isFinite(value)) noteNotFinite();
  if (typeof value !== 'object' || value === null) return false;
  try {
    return search(value);
  } catch {
    return true; // a getter that throws, or a cycle, which JSON.stringify reports
  }
}

interface MayHaveToJson {
  readonly toJSON?: unknown;
}

function search(value: object): boolean {
  if (Array.isArray(value)) return searchList(value);
  const { toJSON } = value as MayHaveToJson;
  if (typeof toJSON === 'function') return !isTrusted(toJSON);
  let type = 'undefined';
  for (const key in value) {
    const child = (value as Record<string, unknown>)[key];
    type = typeof child;
    if (type === 'symbol') return true;
    if (type === 'number' && !Number.isFinite(child)) noteNotFinite();
    if (type === 'object' && child !== null && search(child as object)) return true;
  }
  // Only an object without own properties is checked for being iterable. The loop ends with the methods of a web
  // class's prototype.
  return (type === 'undefined' || type === 'function') && isBareIterable(value);
}

function searchList(list: readonly unknown[] & MayHaveToJson): boolean {
  if (typeof list.toJSON === 'function') return true;
  for (let i = 0; i < list.length; i += 1) {
    const type = typeof list[i]; // without a variable for the item, which would box the floats of a list
    if (type === 'symbol') return true;
    if (type === 'number' && !Number.isFinite(list[i])) noteNotFinite();
    if (type === 'object' && list[i] !== null && search(list[i] as object)) return true;
  }
  return false;
}

/**
 * A replacer for `JSON.stringify` that refuses values that would be dropped, and converts built-in objects that a
 * toJSON returned.
 */
export function lookAgain(key: string, value: unknown): unknown {
  if (value === undefined || value === null) return value;
  if (typeof value === 'symbol') throw new TypeError('a symbol is not JSON');
  if (typeof value === 'number' && !Number.isFinite(value)) noteNotFinite();
  const { toJSON } = value as MayHaveToJson;
  if (isTrusted(toJSON)) return toJSON.call(value, key);
  if (typeof value === 'object' && isBareIterable(value)) throw new TypeError('an iterable is not JSON');
  return value;
}
