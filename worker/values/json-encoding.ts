/**
 * Values to JSON at native speed, with what `JSON.stringify` gets wrong put right: typed arrays and buffers become
 * arrays, BigInts within 2^53 numbers; a BigInt too large, and what is no data (`not-data.ts`), are errors.
 *
 * How: JSON.stringify asks objects for their toJSON, and built-in objects have one that converts or refuses
 * (`json-conversions.ts`). It has blind spots, which a quick walk finds first (`json-blind-spots.ts`); only then a
 * replacer function looks at every value, for 1.7 times the price (bench/json.ts).
 */
import { hasBlindSpot, lookAgain } from './json-blind-spots.js';
import { convertBuiltIns } from './json-conversions.js';
import { invalidOutput } from './output-problem.js';

/** Returns the UTF-8 bytes of `jsonText`, in memory of their own. @throws SERVE_OUTPUT_INVALID naming the property */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(jsonText(value));
}

/** Returns `value` as JSON, with `indent` spaces per level; `undefined` and non-finite numbers are `null`. @throws SERVE_OUTPUT_INVALID naming the property */
export function jsonText(value: unknown, indent = 0): string {
  convertBuiltIns(true);
  try {
    const text: string | undefined = hasBlindSpot(value)
      ? JSON.stringify(value, lookAgain, indent)
      : JSON.stringify(value, undefined, indent);
    return text ?? 'null';
  } catch (cause) {
    convertBuiltIns(false);
    throw invalidOutput('JSON', value, cause);
  } finally {
    convertBuiltIns(false);
  }
}
