/** Apps in JavaScript and TypeScript: Node with our own worker. */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeExtensions, type Runtime } from '../runtime.js';
import { nodeSources } from './node-sources.js';

/** The program of workers in Node. */
export const WORKER_ENTRY = fileURLToPath(new URL('../../../worker/main.js', import.meta.url));
/** Tells the worker that its app will be in TypeScript, so that it loads what that takes before it knows the app. */
const LOADS_TYPESCRIPT = '--typescript';
const EXTENSIONS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs'];

export const node: Runtime = {
  names: ['node'],
  extensions: codeExtensions(EXTENSIONS),
  sources: nodeSources,
  leftovers: [],
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  prepare: ({ app }) =>
    Promise.resolve({
      command: [process.execPath, WORKER_ENTRY, ...(isTypeScript(app) ? [LOADS_TYPESCRIPT] : [])], // the frame `start` names the app
      env: {},
      cwd: null,
      label: 'node',
      mayWait: true,
      interpreter: null, // the server's Node
      threadVariables: [],
      watches: [app],
      batchCure: 'export `inferenceBatch`, or give a route `batch: true`',
      warnings: [],
    }),
};

function isTypeScript(app: string): boolean {
  return ['.ts', '.mts', '.cts'].includes(extname(app));
}
