/**
 * Apps in JavaScript and TypeScript: Node with our own worker. A model of a store need not be one: whatever is found, or is
 * missing, in its place is refused by its worker, since models may be registered before they can be served.
 */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Runtime } from './runtime.js';

const WORKER_ENTRY = fileURLToPath(new URL('../../worker/main.js', import.meta.url));
const EXTENSIONS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs'];

export const node: Runtime = {
  extensions: EXTENSIONS,
  claims: ({ app, service }) => EXTENSIONS.includes(extname(app)) || service !== null,
  prepare: ({ app }) =>
    Promise.resolve({
      command: [process.execPath, WORKER_ENTRY], // the app is named in the frame `start`
      env: {},
      cwd: null,
      label: 'node',
      watches: [app],
    }),
};
