/** Values to what every MessagePack reader knows: no extension types, the same meaning as the JSON output. */
import { ServeError } from '../../protocol/errors.js';
import { findProblem, type BigIntRange } from './output-problem.js';

/** MessagePack's int64 and uint64. */
const RANGE: BigIntRange = {
  fits: (value) => value >= -(2n ** 63n) && value < 2n ** 64n,
  limit: '64 bits',
};

/** @throws SERVE_OUTPUT_INVALID naming the property, on cycles, promises and integers beyond 64 bits */
export function plainValue(value: unknown): unknown {
  try {
    return convert(value, new Set());
  } catch (cause) {
    const problem =
      findProblem(value, RANGE) ?? (cause instanceof Error ? cause.message : 'it cannot be encoded');
    throw new ServeError('SERVE_OUTPUT_INVALID', `The output is not MessagePack: ${problem}.`, { cause });
  }
}

function convert(value: unknown, ancestors: Set<object>): unknown {
  if (typeof value === 'bigint' && !RANGE.fits(value)) throw new RangeError('a BigInt beyond 64 bits');
  if (typeof value === 'function' || typeof value === 'symbol') return null;
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value as Float32Array);
  if (ancestors.has(value)) throw new TypeError('a cycle');
  if (value instanceof Promise) throw new TypeError('a promise');
  ancestors.add(value);
  const plain = convertChildren(value, ancestors);
  ancestors.delete(value);
  return plain;
}

function convertChildren(value: object, ancestors: Set<object>): unknown {
  if (Array.isArray(value)) return value.map((item) => convert(item, ancestors));
  if (value instanceof Set) return [...value].map((item) => convert(item, ancestors));
  const toJson = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJson === 'function') return convert(toJson.call(value), ancestors);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(
    entries.map(([key, item]: [unknown, unknown]) => [String(key), convert(item, ancestors)]),
  );
}
