/**
 * Runtime of models of a store that no other runtime can serve: models may be registered before they can be served, and the
 * worker reports what is wrong or missing.
 */
import { node } from './node/node.js';
import { NO_EXTENSIONS, type Runtime } from './runtime.js';

export const unservable: Runtime = {
  ...node,
  names: [],
  extensions: NO_EXTENSIONS,
  sources: null,
  claims: ({ service }) => service !== null,
};
