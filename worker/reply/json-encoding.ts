/**
 * Values to JSON at native speed, with what `JSON.stringify` gets wrong put right: typed arrays become arrays,
 * BigInts within 2^53 numbers, Maps objects, Sets arrays; a forgotten `await` and a BigInt too large are errors.
 *
 * How: `toJSON` accessors on the built-in prototypes answer only while this module encodes, so the app's own
 * JSON.stringify keeps its meaning. A replacer function or a walk over every value would cost several times more
 * (bench/json.ts). An app that assigns its own toJSON wins.
 */
import { ServeError } from '../../protocol/errors.js';
import { findProblem, numberOf } from './output-problem.js';

let encoding = false;

/** UTF-8 of `jsonText`, in memory of its own. @throws SERVE_OUTPUT_INVALID naming the property */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(jsonText(value));
}

/** JSON of `value`; `undefined` and non-finite numbers are `null`. @throws SERVE_OUTPUT_INVALID naming the property */
export function jsonText(value: unknown): string {
  encoding = true;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    encoding = false;
    const problem = findProblem(value) ?? (cause instanceof Error ? cause.message : 'it cannot be encoded');
    throw new ServeError('SERVE_OUTPUT_INVALID', `The output is not JSON: ${problem}.`, { cause });
  } finally {
    encoding = false;
  }
  if (text !== undefined) return text;
  if (value === undefined) return 'null';
  throw new ServeError('SERVE_OUTPUT_INVALID', `The output is not JSON: it is a ${typeof value}.`);
}

function answerWhileEncoding(prototype: object, convert: (this: never) => unknown): void {
  let own: unknown = (prototype as { toJSON?: unknown }).toJSON;
  Object.defineProperty(prototype, 'toJSON', {
    configurable: true,
    enumerable: false,
    get: () => (encoding ? convert : own),
    set(this: object, value: unknown) {
      if (this !== prototype) {
        Object.defineProperty(this, 'toJSON', {
          value,
          writable: true,
          configurable: true,
          enumerable: true,
        });
        return;
      }
      own = value;
      Object.defineProperty(prototype, 'toJSON', {
        value,
        writable: true,
        configurable: true,
        enumerable: false,
      });
    },
  });
}

function arrayOf(this: ArrayLike<number | bigint>): unknown[] {
  const array = new Array<unknown>(this.length);
  for (let i = 0; i < this.length; i += 1) array[i] = this[i];
  return array;
}

const TYPED_ARRAY = Object.getPrototypeOf(Uint8Array.prototype) as object;
answerWhileEncoding(TYPED_ARRAY, arrayOf);
answerWhileEncoding(Buffer.prototype as object, arrayOf);
answerWhileEncoding(BigInt.prototype, function (this: bigint) {
  return numberOf(this.valueOf());
});
answerWhileEncoding(Map.prototype, function (this: Map<unknown, unknown>) {
  return Object.fromEntries(this);
});
answerWhileEncoding(Set.prototype, function (this: Set<unknown>) {
  return [...this];
});
answerWhileEncoding(Promise.prototype, function () {
  throw new TypeError('a promise');
});
