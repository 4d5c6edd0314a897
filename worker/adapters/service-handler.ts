/** Finds the handler of a custom service among a file's exports. */
import type { Context } from '../api/mms/context.js';
import type { Item } from '../api/mms/item.js';
import type { Exports } from './loaded-app.js';

/** Gets the items of a batch and returns, or promises, one result for each. */
export type Handle = (data: readonly Item[] | null, context: Context) => unknown;

/** An instance of a class-style service. */
export interface ServiceObject {
  initialize?(context: Context): unknown;
  handle: Handle;
}

export type Handler =
  /** `owner` is `this` in the function. */
  | { readonly style: 'function'; readonly handle: Handle; readonly owner: Exports }
  | { readonly style: 'class'; readonly make: new () => ServiceObject };

const USUAL_NAME = 'handle';

/**
 * Finds the function or the class of this name, otherwise the only class with a `handle` method. An empty name means
 * `handle`, and then, if the file is known to be a service, a function that is the default export. Null if nothing is
 * found.
 */
export function findHandler(
  candidates: readonly Exports[],
  name: string,
  isService: boolean,
): Handler | null {
  for (const owner of candidates) {
    const value = owner[name || USUAL_NAME];
    if (hasHandle(value)) return { style: 'class', make: value };
    if (typeof value === 'function') return { style: 'function', handle: value as Handle, owner };
  }
  return (
    (name === '' && isService ? defaultFunction(candidates) : null) ??
    onlyClass(serviceClasses(candidates), name)
  );
}

/** Returns the exported classes with a `handle` method. */
export function serviceClasses(candidates: readonly Exports[]): (new () => ServiceObject)[] {
  return [...new Set(candidates.flatMap((exports) => Object.values(exports)))].filter(hasHandle);
}

function onlyClass(classes: readonly (new () => ServiceObject)[], name: string): Handler | null {
  const [make] = classes.length === 1 ? classes : classes.filter((candidate) => candidate.name === name);
  return make === undefined ? null : { style: 'class', make };
}

function defaultFunction(candidates: readonly Exports[]): Handler | null {
  const owner = candidates.find(({ default: value }) => typeof value === 'function' && !hasHandle(value));
  return owner === undefined ? null : { style: 'function', handle: owner['default'] as Handle, owner };
}

function hasHandle(value: unknown): value is new () => ServiceObject {
  if (typeof value !== 'function') return false;
  const { prototype } = value as { prototype?: Partial<ServiceObject> };
  return typeof prototype?.handle === 'function';
}
