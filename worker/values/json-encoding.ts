/**
 * Encodes values as JSON at native speed, with the mistakes of `JSON.stringify` corrected: typed arrays and buffers
 * become arrays, BigInts within 2^53 numbers; larger BigInts and values that are not data (`not-data.ts`) are errors.
 *
 * JSON.stringify calls toJSON, and built-in objects get one that converts or refuses, which is active only while this file
 * encodes: the app's own JSON.stringify is unchanged, and a toJSON that the app assigned wins. Some values escape this:
 * symbols and iterables without properties have no toJSON that would be called, and the result of a toJSON is not
 * converted again. A quick walk finds them first. Only then a replacer function checks every value, which takes 1.7 times as
 * long (bench/json.ts).
 */
import { hintOnce } from '../process/hint-once.js';
import { invalidOutput, placeOfNotFinite, numberOf } from './output-problem.js';
import { isBareIterable, NOT_DATA } from './not-data.js';

/** Switches the conversions on for the whole process. It may be on only while JSON.stringify runs. */
let encoding = false;

/** Whether the value being encoded contains NaN or an infinity, which JSON writes as null. */
let hasNotFinite = false;

/** Returns the UTF-8 bytes of `jsonText`, in memory of their own. @throws SERVE_OUTPUT_INVALID naming the property */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(jsonText(value));
}

/** Returns `value` as JSON, with `indent` spaces per level; `undefined` and non-finite numbers are `null`. @throws SERVE_OUTPUT_INVALID naming the property */
export function jsonText(value: unknown, indent = 0): string {
  encoding = true;
  hasNotFinite = false;
  let text: string | undefined;
  try {
    text = hasBlindSpot(value)
      ? JSON.stringify(value, lookAgain, indent)
      : JSON.stringify(value, undefined, indent);
  } catch (cause) {
    encoding = false;
    throw invalidOutput('JSON', value, cause);
  } finally {
    encoding = false;
  }
  if (hasNotFinite) hintOnce('not finite', () => notFinite(value));
  return text ?? 'null';
}

function notFinite(value: unknown): string {
  return `${placeOfNotFinite(value)} is not a finite number; JSON has no such number, so it was written as null.`;
}

/**
 * Whether `value` may contain something that `lookAgain` must check; false for nearly all outputs, and sometimes true
 * without need. Takes about a fourteenth of the time of `JSON.stringify`, more for objects of thousands of keys
 * (bench/json.ts).
 */
export function hasBlindSpot(value: unknown): boolean {
  if (typeof value === 'symbol') return true;
  if (typeof value === 'number' && !Number.isFinite(value)) hasNotFinite = true;
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
    if (type === 'number' && !Number.isFinite(child)) hasNotFinite = true;
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
    if (type === 'number' && !Number.isFinite(list[i])) hasNotFinite = true;
    if (type === 'object' && list[i] !== null && search(list[i] as object)) return true;
  }
  return false;
}

/**
 * A replacer for `JSON.stringify` that refuses values that would be dropped, and converts built-in objects that a
 * toJSON returned.
 */
function lookAgain(key: string, value: unknown): unknown {
  if (value === undefined || value === null) return value;
  if (typeof value === 'symbol') throw new TypeError('a symbol is not JSON');
  if (typeof value === 'number' && !Number.isFinite(value)) hasNotFinite = true;
  const { toJSON } = value as MayHaveToJson;
  if (isTrusted(toJSON)) return toJSON.call(value, key);
  if (typeof value === 'object' && isBareIterable(value)) throw new TypeError('an iterable is not JSON');
  return value;
}

type ToJson = (this: unknown, key: string) => unknown;

const dateToJson: unknown = Date.prototype.toJSON;

/** Functions that write their object completely or throw, so that their result needs no second check. */
const TRUSTED = new Set<unknown>([URL.prototype.toJSON]);

/** Whether this is the toJSON of a converted built-in object, not one of the app. */
function isTrusted(toJson: unknown): toJson is ToJson {
  return toJson === dateToJson || TRUSTED.has(toJson);
}

function answerWhileEncoding(prototype: object, convert: (this: never) => unknown): void {
  TRUSTED.add(convert);
  const own: unknown = (prototype as MayHaveToJson).toJSON;
  Object.defineProperty(prototype, 'toJSON', {
    configurable: true,
    enumerable: false,
    get: () => (encoding ? convert : own),
    set(this: object, value: unknown) {
      const enumerable = this !== prototype;
      Object.defineProperty(this, 'toJSON', { value, writable: true, configurable: true, enumerable });
    },
  });
}

function arrayOf(this: ArrayLike<number | bigint>): unknown[] {
  const array = new Array<unknown>(this.length);
  for (let i = 0; i < this.length; i += 1) {
    const item = this[i];
    array[i] = item;
    if (typeof item === 'number' && !Number.isFinite(item)) hasNotFinite = true;
  }
  return array;
}

const TYPED_ARRAY = Object.getPrototypeOf(Uint8Array.prototype) as object;
answerWhileEncoding(TYPED_ARRAY, arrayOf);
answerWhileEncoding(Buffer.prototype as object, arrayOf);
answerWhileEncoding(BigInt.prototype, function (this: bigint) {
  return numberOf(this.valueOf());
});
answerWhileEncoding(ArrayBuffer.prototype, function (this: ArrayBuffer) {
  return [...new Uint8Array(this)];
});
answerWhileEncoding(DataView.prototype, function (this: DataView) {
  return [...new Uint8Array(this.buffer, this.byteOffset, this.byteLength)];
});
for (const [prototype, kind] of NOT_DATA) {
  answerWhileEncoding(prototype, () => {
    throw new TypeError(`${kind} is not JSON`);
  });
}
