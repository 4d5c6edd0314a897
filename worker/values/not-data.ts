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

/** Objects of the web that show none of what they hold, by tag: naming their classes makes Node load its whole fetch. */
const WEB_KINDS: Readonly<Record<string, string>> = {
  Headers: 'return Object.fromEntries(headers)',
  FormData: 'return Object.fromEntries(form)',
  URLSearchParams: 'return Object.fromEntries(params)',
};

/** Returns null for what may be data. It may throw: a Proxy may answer anything. */
export function notDataOf(value: unknown): NotData | null {
  if (typeof value === 'symbol') return SYMBOL;
  if (typeof value !== 'function' && (typeof value !== 'object' || value === null)) return null;
  const found = NOT_DATA.find(([prototype]) => Object.prototype.isPrototypeOf.call(prototype, value));
  if (found !== undefined) return [found[1], found[2]];
  return isBareIterable(value) ? bareIterable(value) : null;
}

type MaybeIterable = Partial<Iterable<unknown> & AsyncIterable<unknown>>;

/** Whether an object offers a loop over what it holds and shows nothing of it as properties. May throw. */
export function isBareIterable(value: object): boolean {
  const { [Symbol.iterator]: iterate, [Symbol.asyncIterator]: iterateLater } = value as MaybeIterable;
  if (typeof iterate !== 'function' && typeof iterateLater !== 'function') return false;
  if (Array.isArray(value) || ArrayBuffer.isView(value) || value instanceof String) return false;
  return Object.keys(value).length === 0;
}

function bareIterable(value: MaybeIterable): NotData {
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  const instead = WEB_KINDS[tag];
  if (instead !== undefined) return [`a ${tag}`, instead];
  const isLater = typeof value[Symbol.iterator] !== 'function';
  return ['an iterable without properties', isLater ? 'return what it yields' : 'return [...iterable]'];
}
