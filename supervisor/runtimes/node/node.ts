/** Apps in JavaScript and TypeScript: Node with our own worker. */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeExtensions, type Runtime } from '../runtime.js';
import { nodeSources } from './node-sources.js';

/** The program of workers in Node. */
export const WORKER_ENTRY = fileURLToPath(new URL('../../../worker/main.js', import.meta.url));
const EXTENSIONS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs'];

export const node: Runtime = {
  names: ['node'],
  extensions: codeExtensions(EXTENSIONS),
  sources: nodeSources,
  leftovers: [],
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  prepare: ({ app }) =>
    Promise.resolve({
      command: [process.execPath, WORKER_ENTRY], // the frame `start` names the app
      env: {},
      cwd: null,
      label: 'node',
      interpreter: null, // the server's Node
      threadVariables: [],
      watches: [app],
      batchCure: 'export `inferenceBatch`, or give a route `batch: true`',
      warnings: [],
    }),
};
