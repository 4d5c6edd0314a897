/** Values that are no data: `JSON.stringify` makes `{}` of them, or leaves them out, and says nothing. */
import { Blob } from 'node:buffer';

/** Says what a value is and what to return instead, as the end of a sentence that begins with the property. */
export type NotData = readonly [kind: string, instead: string];

const SYMBOL: NotData = ['a symbol', 'return its description'];

const PLAIN_ITERATOR: unknown = Object.getPrototypeOf(Object.getPrototypeOf([].values()));
const ASYNC_ITERATOR: unknown = Object.getPrototypeOf(
  Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})())),
);

/** Kinds of object that are no data, by prototype. An object with a `toJSON` of its own or of its class says itself what it is as data. */
export const NOT_DATA: readonly (readonly [prototype: object, ...NotData])[] = [
  [Promise.prototype, 'a promise', 'await it'],
  [Map.prototype, 'a Map', 'return Object.fromEntries(map)'],
  [Set.prototype, 'a Set', 'return [...set]'],
  [WeakMap.prototype, 'a WeakMap', 'return what it holds'],
  [WeakSet.prototype, 'a WeakSet', 'return what it holds'],
  [Function.prototype, 'a function', 'call it, or leave it out'],
  [Error.prototype, 'an Error', 'return its message, or throw it'],
  [Blob.prototype, 'a Blob', 'return its bytes'],
  [PLAIN_ITERATOR as object, 'an iterator', 'return [...iterator]'],
  [ASYNC_ITERATOR as object, 'an iterator', 'return what it yields'],
];

/** Null for what may be data. May throw: a Proxy may answer anything. */
export function notDataOf(value: unknown): NotData | null {
  if (typeof value === 'symbol') return SYMBOL;
  if (typeof value !== 'function' && (typeof value !== 'object' || value === null)) return null;
  const found = NOT_DATA.find(([prototype]) => Object.prototype.isPrototypeOf.call(prototype, value));
  return found === undefined ? null : [found[1], found[2]];
}

/**
 * Whether a symbol is a value anywhere in `value`, which must be free of cycles. JSON leaves symbols out without asking
 * for their `toJSON`, so this takes a walk: about a twelfth of what `JSON.stringify` takes for the same value, more for
 * objects of thousands of keys (bench/json.ts). An object with a `toJSON` is taken at its word.
 */
export function holdsSymbol(value: object): boolean {
  if (Array.isArray(value)) return listHoldsSymbol(value);
  if (ArrayBuffer.isView(value) || typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
  for (const key in value) {
    const child = (value as Record<string, unknown>)[key];
    const type = typeof child;
    if (type === 'symbol') return true;
    if (type === 'object' && child !== null && holdsSymbol(child as object)) return true;
  }
  return false;
}

function listHoldsSymbol(list: readonly unknown[]): boolean {
  for (let i = 0; i < list.length; i += 1) {
    const type = typeof list[i]; // without a variable for the item: a list of floats would be boxed
    if (type === 'symbol') return true;
    if (type === 'object' && list[i] !== null && holdsSymbol(list[i] as object)) return true;
  }
  return false;
}
