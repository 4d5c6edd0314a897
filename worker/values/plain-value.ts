/**
 * Converts values to what every MessagePack reader supports: no extension types, the same meaning as the JSON output.
 */
import { notDataOf } from './not-data.js';
import { invalidOutput, type BigIntRange } from './output-problem.js';

/** The range of MessagePack's int64 and uint64. */
const RANGE: BigIntRange = {
  fits: (value) => value >= -(2n ** 63n) && value < 2n ** 64n,
  limit: '64 bits',
};

/**
 * Returns the converted value. @throws SERVE_OUTPUT_INVALID naming the property, for cycles, integers beyond 64 bits
 * and values that are not data
 */
export function plainValue(value: unknown): unknown {
  try {
    return convert(value, new Set());
  } catch (cause) {
    throw invalidOutput('MessagePack', value, cause, RANGE);
  }
}

function convert(value: unknown, ancestors: Set<object>): unknown {
  if (typeof value === 'bigint' && !RANGE.fits(value)) throw new RangeError('a BigInt beyond 64 bits');
  if (typeof value === 'symbol') throw new TypeError('a symbol');
  if (typeof value === 'string') return wellFormed(value);
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return value;
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (value instanceof DataView) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (ArrayBuffer.isView(value)) return Array.from(value as Float32Array);
  if (ancestors.has(value)) throw new TypeError('a cycle');
  ancestors.add(value);
  const plain = convertChildren(value, ancestors);
  ancestors.delete(value);
  return plain;
}

function convertChildren(value: object, ancestors: Set<object>): unknown {
  const toJson = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJson === 'function') {
    const given: unknown = toJson.call(value);
    if (given !== value) return convert(given, ancestors);
  }
  if (Array.isArray(value)) return value.map((item) => convert(item, ancestors));
  const entries = Object.entries(value);
  if (entries.length === 0 || !isPlain(value)) throwIfNotData(value);
  return Object.fromEntries(entries.map(([key, item]) => [wellFormed(key), convert(item, ancestors)]));
}

/**
 * Replaces half a surrogate pair by U+FFFD, because readers reject it as text. The library does so in long texts only. The method exists in every supported Node; the types of this language level do
 * not have it.
 */
function wellFormed(text: string): string {
  return (text as unknown as { toWellFormed(): string }).toWellFormed();
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function throwIfNotData(value: object): void {
  const notData = notDataOf(value);
  if (notData !== null) throw new TypeError(notData[0]);
}
