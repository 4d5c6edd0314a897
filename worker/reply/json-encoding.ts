/**
 * Values to JSON at native speed, with what `JSON.stringify` gets wrong put right: typed arrays and buffers become
 * arrays, BigInts within 2^53 numbers; a BigInt too large, and what is no data (`not-data.ts`), are errors.
 *
 * How: `toJSON` accessors on the built-in prototypes answer only while this module encodes, so the app's own
 * JSON.stringify keeps its meaning. A replacer function or a walk over every value would cost several times more
 * (bench/json.ts). An app that assigns its own toJSON wins.
 */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { holdsSymbol, NOT_DATA } from './not-data.js';
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
  let maySayLess = typeof value === 'symbol';
  try {
    text = JSON.stringify(value);
    if (typeof value === 'object' && value !== null) maySayLess = mayHoldSymbol(value);
  } catch (cause) {
    encoding = false;
    throw notJson(findProblem(value) ?? describeThrown(cause).message, cause);
  } finally {
    encoding = false;
  }
  if (maySayLess) {
    const problem = findProblem(value);
    if (problem !== null) throw notJson(problem);
  }
  return text ?? 'null';
}

function mayHoldSymbol(value: object): boolean {
  try {
    return holdsSymbol(value);
  } catch {
    return true; // a getter that throws the second time, or a cycle in a prototype: the thorough search decides
  }
}

function notJson(problem: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_OUTPUT_INVALID', `The output is not JSON: ${problem}.`, { cause });
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
answerWhileEncoding(ArrayBuffer.prototype, function (this: ArrayBuffer) {
  return [...new Uint8Array(this)];
});
answerWhileEncoding(DataView.prototype, function (this: DataView) {
  return [...new Uint8Array(this.buffer, this.byteOffset, this.byteLength)];
});
for (const [prototype, kind] of NOT_DATA) {
  answerWhileEncoding(prototype, () => {
    throw new TypeError(`${kind} is no JSON`);
  });
}
