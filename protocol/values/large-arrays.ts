/**
 * Takes the large arrays that stand near the top of a value out of it, and puts them in again on the other side. An array is
 * left in its place if it stands deeper, in a Map or a Set, or twice.
 */

/** Smaller arrays stay in the value, and get memory of their own when it is read: they do not keep all of it alive. */
const LARGE_BYTES = 64 * 1024;

/** Limits of the search, so that it costs nothing beside the writing of the value. */
const MAX_DEPTH = 3;
const MAX_PARTS = 64;

interface ArrayClass {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): ArrayBufferView;
}

/** By their names; `Float16Array` is newer than the oldest Node. */
const CLASSES: ReadonlyMap<unknown, ArrayClass> = new Map(
  ['Int8', 'Uint8', 'Uint8Clamped', 'Int16', 'Uint16', 'Int32', 'Uint32']
    .concat('Float16', 'Float32', 'Float64', 'BigInt64', 'BigUint64')
    .flatMap((name) => {
      const found = (globalThis as unknown as Record<string, ArrayClass | undefined>)[`${name}Array`];
      return found === undefined ? [] : [[`${name}Array`, found]];
    }),
);

/** An array that was taken out: its class, its size, and the keys that lead to its place. */
export type Listed = readonly [kind: string, bytes: number, ...path: string[]];

export interface TakenOut {
  readonly rest: unknown;
  readonly list: readonly Listed[];
  /** In the order of the list. */
  readonly arrays: readonly Uint8Array[];
}

/** Whether it is a large typed array or Buffer. */
export function isLarge(value: unknown): value is Uint8Array {
  return (
    ArrayBuffer.isView(value) &&
    value.byteLength >= LARGE_BYTES &&
    CLASSES.has((value as Uint8Array)[Symbol.toStringTag])
  );
}

export function kindOf(array: Uint8Array): string {
  return Buffer.isBuffer(array) ? 'Buffer' : array[Symbol.toStringTag];
}

/** An array of this kind, as a view of `memory`. */
export function viewOf(kind: string, memory: Buffer): unknown {
  const { buffer, byteOffset, length } = memory;
  if (kind === 'Buffer') return memory;
  const ArrayOfKind = CLASSES.get(kind);
  if (ArrayOfKind === undefined) throw new TypeError(`${kind} is no class of arrays`);
  return new ArrayOfKind(buffer, byteOffset, length / ArrayOfKind.BYTES_PER_ELEMENT);
}

/** Leaves the value as it is: objects from which an array is taken are copied. */
export function takeOut(value: unknown): TakenOut {
  const list: Listed[] = [];
  const arrays: Uint8Array[] = [];
  const path: string[] = [];
  let parts = 0;
  const restOf = (part: object): unknown => {
    if (isLarge(part) && !arrays.includes(part)) {
      list.push([kindOf(part), part.byteLength, ...path]);
      arrays.push(part);
      return null;
    }
    if (path.length === MAX_DEPTH || !isContainer(part)) return part;
    let rest = part;
    for (const [key, inner] of objectsIn(part)) {
      if ((parts += 1) > MAX_PARTS) break;
      path.push(key);
      const innerRest = restOf(inner);
      path.pop();
      if (innerRest === inner) continue;
      if (rest === part) rest = copyOf(part);
      rest[key] = innerRest;
    }
    return rest;
  };
  return { rest: typeof value === 'object' && value !== null ? restOf(value) : value, list, arrays };
}

/**
 * Puts an array in its place. The objects that lead to it become copies, which `copies` holds: V8's reader keeps those that it
 * has read.
 */
export function putIn(
  rest: unknown,
  [key, ...path]: readonly string[],
  array: unknown,
  copies: Set<unknown>,
): unknown {
  if (key === undefined) return array;
  const copy = (copies.has(rest) ? rest : copyOf(rest as Container)) as Container;
  copies.add(copy);
  copy[key] = putIn(copy[key], path, array, copies);
  return copy;
}

type Container = Record<string, unknown>;

/** Whether it is a plain object, or a short array. */
function isContainer(value: object): value is Container {
  if (Array.isArray(value)) return value.length <= MAX_PARTS;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The objects in it, with their keys; none if it has many keys. */
function objectsIn(container: Container): readonly (readonly [key: string, inner: object])[] {
  const found: [string, object][] = [];
  const add = (key: string, inner: unknown): void => {
    if (typeof inner === 'object' && inner !== null && key !== '__proto__') found.push([key, inner]);
  };
  if (Array.isArray(container)) {
    for (let i = 0; i < container.length; i += 1)
      if (typeof container[i] === 'object') add(`${i}`, container[i]);
    return found;
  }
  const keys = Object.keys(container);
  // A getter is left to V8's writer: it may be slow, or return another value each time.
  if (keys.length <= MAX_PARTS)
    for (const key of keys) add(key, Object.getOwnPropertyDescriptor(container, key)?.value);
  return found;
}

/** A copy of an array has its holes, and its other keys. */
function copyOf(container: Container): Container {
  if (!Array.isArray(container)) return { ...container };
  return Object.assign(new Array<unknown>(container.length), container);
}
