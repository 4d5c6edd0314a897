/** Apps in JavaScript and TypeScript: Node with our own worker. */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Runtime } from './runtime.js';

const WORKER_ENTRY = fileURLToPath(new URL('../../worker/main.js', import.meta.url));
const EXTENSIONS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs'];

export const node: Runtime = {
  names: ['node'],
  extensions: EXTENSIONS,
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  prepare: ({ app }) =>
    Promise.resolve({
      command: [process.execPath, WORKER_ENTRY], // the app is named in the frame `start`
      env: {},
      cwd: null,
      label: 'node',
      interpreter: null, // the server's own
      threadVariables: [],
      watches: [app],
      warnings: [],
    }),
};

/**
 * Models of a store that are no app of any kind: models may be registered before they can be served, and the worker says
 * what is wrong with what is found, or is missing, in their place.
 */
export const unservable: Runtime = {
  ...node,
  names: [],
  extensions: [],
  claims: ({ service }) => service !== null,
};
