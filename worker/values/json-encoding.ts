/**
 * Encodes values as JSON at native speed, with the mistakes of `JSON.stringify` corrected: typed arrays and buffers
 * become arrays, BigInts within 2^53 numbers; larger BigInts and values that are not data (`not-data.ts`) are errors.
 *
 * JSON.stringify calls toJSON, and built-in objects get one that converts or refuses (`json-conversions.ts`). Some
 * values escape this; a quick walk finds them first (`json-blind-spots.ts`). Only then a replacer function checks every
 * value, which takes 1.7 times as long (bench/json.ts).
 */
import { hasBlindSpot, lookAgain } from './json-blind-spots.js';
import { hintOnce } from '../process/hint-once.js';
import { convertBuiltIns, takeNotFinite } from './json-conversions.js';
import { invalidOutput, placeOfNotFinite } from './output-problem.js';

/** Returns the UTF-8 bytes of `jsonText`, in memory of their own. @throws SERVE_OUTPUT_INVALID naming the property */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(jsonText(value));
}

/** Returns `value` as JSON, with `indent` spaces per level; `undefined` and non-finite numbers are `null`. @throws SERVE_OUTPUT_INVALID naming the property */
export function jsonText(value: unknown, indent = 0): string {
  convertBuiltIns(true);
  takeNotFinite();
  let text: string | undefined;
  try {
    text = hasBlindSpot(value)
      ? JSON.stringify(value, lookAgain, indent)
      : JSON.stringify(value, undefined, indent);
  } catch (cause) {
    convertBuiltIns(false);
    throw invalidOutput('JSON', value, cause);
  } finally {
    convertBuiltIns(false);
  }
  if (takeNotFinite()) hintOnce('not finite', () => notFinite(value));
  return text ?? 'null';
}

function notFinite(value: unknown): string {
  return `${placeOfNotFinite(value)} is not a finite number; JSON has no such number, so it was written as null.`;
}
