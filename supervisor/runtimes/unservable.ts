/**
 * Models of a store that are no app of any kind: models may be registered before they can be served, and the worker says
 * what is wrong with what is found, or is missing, in their place.
 */
import { node } from './node/node.js';
import type { Runtime } from './runtime.js';

export const unservable: Runtime = {
  ...node,
  names: [],
  extensions: [],
  sources: null,
  claims: ({ service }) => service !== null,
};
