/** Values that are not data: `JSON.stringify` silently writes `{}` for them, or leaves them out. */
import { Blob } from 'node:buffer';

/** Names the kind of value and what to return instead, as the end of a sentence that begins with the property. */
type NotData = readonly [kind: string, instead: string];

const SYMBOL: NotData = ['a symbol', 'return its description'];

const PLAIN_ITERATOR: unknown = Object.getPrototypeOf(Object.getPrototypeOf([].values()));
const ASYNC_ITERATOR: unknown = Object.getPrototypeOf(
  Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})())),
);

/** Kinds of object that are not data, by prototype. An object with its own `toJSON`, or one of its class, is data. */
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

/** Web objects that show none of their content, by tag: naming their classes would make Node load its whole fetch. */
const WEB_KINDS: Readonly<Record<string, string>> = {
  Headers: 'return Object.fromEntries(headers)',
  FormData: 'return Object.fromEntries(form)',
  URLSearchParams: 'return Object.fromEntries(params)',
};

/** Returns null for a value that may be data. May throw: a Proxy may answer anything. */
export function notDataOf(value: unknown): NotData | null {
  if (typeof value === 'symbol') return SYMBOL;
  if (typeof value !== 'function' && (typeof value !== 'object' || value === null)) return null;
  const found = NOT_DATA.find(([prototype]) => Object.prototype.isPrototypeOf.call(prototype, value));
  if (found !== undefined) return [found[1], found[2]];
  return isBareIterable(value) ? bareIterable(value) : null;
}

type MaybeIterable = Partial<Iterable<unknown> & AsyncIterable<unknown>>;

/** Whether an object is iterable and has no properties that show its content. May throw. */
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

/** Whether the value has to be awaited: a promise, or any object with a `then`. A getter of the app may throw here. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
