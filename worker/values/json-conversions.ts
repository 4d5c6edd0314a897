/**
 * Changes how JSON.stringify writes built-in objects while `json-encoding.ts` encodes: typed arrays and buffers become
 * arrays, BigInts within 2^53 numbers, and values that are not data (`not-data.ts`) are refused.
 *
 * The `toJSON` accessors on the prototypes are active only then, so the app's own JSON.stringify is unchanged. A toJSON
 * that the app assigned wins.
 */
import { NOT_DATA } from './not-data.js';
import { numberOf } from './output-problem.js';

let encoding = false;

/** Switches the conversions on or off for the whole process. They may be on only while JSON.stringify runs. */
export function convertBuiltIns(on: boolean): void {
  encoding = on;
}

let hasNotFinite = false;

/** Notes that the value being encoded contains NaN or an infinity, which JSON writes as null. */
export function noteNotFinite(): void {
  hasNotFinite = true;
}

/** Whether that was noted since the last call. */
export function takeNotFinite(): boolean {
  const had = hasNotFinite;
  hasNotFinite = false;
  return had;
}

type ToJson = (this: unknown, key: string) => unknown;

const dateToJson: unknown = Date.prototype.toJSON;

/** Functions that write their object completely or throw, so that their result needs no second check. */
const TRUSTED = new Set<unknown>([URL.prototype.toJSON]);

/** Whether this is the toJSON of a converted built-in object, not one of the app. */
export function isTrusted(toJson: unknown): toJson is ToJson {
  return toJson === dateToJson || TRUSTED.has(toJson);
}

function answerWhileEncoding(prototype: object, convert: (this: never) => unknown): void {
  TRUSTED.add(convert);
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
