/**
 * What JSON.stringify loses in silence although every built-in object refuses to be lost (`json-conversions.ts`):
 * symbols and iterables without properties have no toJSON that would be asked, and what a toJSON returns is not asked
 * for its own.
 */
import { isTrusted } from './json-conversions.js';
import { isBareIterable } from './not-data.js';

/**
 * Whether something in `value` must be looked at by `lookAgain`; false for nearly all that apps return. May say true
 * without need. Takes about a fourteenth of what `JSON.stringify` takes for the same value, more for objects of
 * thousands of keys (bench/json.ts).
 */
export function hasBlindSpot(value: unknown): boolean {
  if (typeof value === 'symbol') return true;
  if (typeof value !== 'object' || value === null) return false;
  try {
    return search(value);
  } catch {
    return true; // a getter that throws, or a cycle: JSON.stringify will meet it too, or know better
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
    if (type === 'object' && child !== null && search(child as object)) return true;
  }
  // Only an object that shows nothing is worth the question. Methods that end the loop are those of a web class's prototype.
  return (type === 'undefined' || type === 'function') && isBareIterable(value);
}

function searchList(list: readonly unknown[] & MayHaveToJson): boolean {
  if (typeof list.toJSON === 'function') return true;
  for (let i = 0; i < list.length; i += 1) {
    const type = typeof list[i]; // without a variable for the item: a list of floats would be boxed
    if (type === 'symbol') return true;
    if (type === 'object' && list[i] !== null && search(list[i] as object)) return true;
  }
  return false;
}

/** A replacer for `JSON.stringify` that refuses what would be lost and converts built-in objects that a toJSON returned. */
export function lookAgain(key: string, value: unknown): unknown {
  if (value === undefined || value === null) return value;
  if (typeof value === 'symbol') throw new TypeError('a symbol is no JSON');
  const { toJSON } = value as MayHaveToJson;
  if (isTrusted(toJSON)) return toJSON.call(value, key);
  if (typeof value === 'object' && isBareIterable(value)) throw new TypeError('an iterable is no JSON');
  return value;
}
