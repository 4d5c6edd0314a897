/** Values to what every MessagePack reader knows: no extension types, the same meaning as the JSON output. */
import { ServeError } from '../../protocol/errors.js';
import { findProblem } from './output-problem.js';

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

/** @throws SERVE_OUTPUT_INVALID naming the property, on cycles, promises and integers beyond 64 bits */
export function plainValue(value: unknown): unknown {
  try {
    return convert(value, []);
  } catch (cause) {
    if (cause instanceof ServeError) throw cause;
    const problem = findProblem(value) ?? (cause instanceof Error ? cause.message : 'it cannot be encoded');
    throw new ServeError('SERVE_OUTPUT_INVALID', `The output is not MessagePack: ${problem}.`, { cause });
  }
}

function convert(value: unknown, ancestors: readonly object[]): unknown {
  if (typeof value === 'bigint' && (value > INT64_MAX || value < INT64_MIN))
    throw new RangeError('a BigInt beyond 64 bits');
  if (typeof value === 'function' || typeof value === 'symbol') return null;
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value as Float32Array);
  if (ancestors.includes(value)) throw new TypeError('a cycle');
  if (value instanceof Promise) throw new TypeError('a promise');
  const inside = [...ancestors, value];
  if (Array.isArray(value)) return value.map((item) => convert(item, inside));
  if (value instanceof Set) return [...value].map((item) => convert(item, inside));
  const toJson = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJson === 'function') return convert(toJson.call(value), inside);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(
    entries.map(([key, item]: [unknown, unknown]) => [String(key), convert(item, inside)]),
  );
}
