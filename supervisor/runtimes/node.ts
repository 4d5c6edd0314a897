/** Apps in JavaScript and TypeScript: Node with our own worker. */
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configError } from '../../protocol/errors.js';
import { findInPath } from '../machine/processes.js';
import type { Sources } from '../watch/file-tree.js';
import type { Runtime } from './runtime.js';

/** The program of workers in Node. */
export const WORKER_ENTRY = fileURLToPath(new URL('../../worker/main.js', import.meta.url));
/** Tells the worker that its app will be in TypeScript, so that it loads what that takes before it knows the app. */
const LOADS_TYPESCRIPT = '--typescript';
const EXTENSIONS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs'];
/** Extensions of files that an app may load. */
const SOURCE_EXTENSIONS: readonly string[] = [...EXTENSIONS, '.tsx', '.jsx'];

/**
 * Finds the files that apps in JavaScript and TypeScript load: relative paths of `import`, `require` and `new URL`. Paths in
 * comments count too; paths that are computed at run time are not found.
 */
export const nodeSources: Sources = {
  languages: ['TypeScript', 'JavaScript'],
  extensions: SOURCE_EXTENSIONS,
  foldersOfOthers: ['node_modules', 'dist', 'build', 'out', 'coverage'],
  localImports: (file, text) => {
    const specifiers = [...text.matchAll(RELATIVE)].map(([, , specifier = '']) => specifier);
    return [...new Set(specifiers.flatMap((specifier) => candidatesOf(join(dirname(file), specifier))))];
  },
};

/** `from './a'`, `import './a'`, `import('./a')`, `require('./a')`, `new URL('./a', import.meta.url)` */
const RELATIVE = /\b(?:from|import|require|URL)\s*(?:\(\s*)?(["'`])(\.{1,2}\/[^"'`\n]+)\1/g;

/** Extensions that an import may have or omit. */
const IMPORTED: readonly string[] = [...SOURCE_EXTENSIONS, '.json'];

/** TypeScript files are imported by the name of their output. */
const SOURCES: Readonly<Record<string, string>> = {
  '.js': '.ts',
  '.mjs': '.mts',
  '.cjs': '.cts',
  '.jsx': '.tsx',
};

function candidatesOf(path: string): string[] {
  const extension = extname(path);
  const source = SOURCES[extension];
  if (source !== undefined) return [path, path.slice(0, -extension.length) + source];
  if (IMPORTED.includes(extension)) return [path];
  return [...IMPORTED.map((each) => path + each), ...IMPORTED.map((each) => join(path, `index${each}`))];
}

export const node: Runtime = {
  names: ['node'],
  entries: EXTENSIONS,
  sources: nodeSources,
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  prepare: ({ app }) => ({
    command: [nodeProgram(process.versions), WORKER_ENTRY, ...(isTypeScript(app) ? [LOADS_TYPESCRIPT] : [])], // the frame `start` names the app
    env: {},
    label: 'node',
    mayWait: true,
    watches: [app],
    values: 'bun' in process.versions ? 'msgpack-values' : undefined, // it has no V8
    batchCure: 'export `inferenceBatch`, or give a route `batch: true`',
    warnings: [],
  }),
};

/** Runtimes that call themselves Node, whose own program runs no worker. */
const OTHER_RUNTIMES = ['electron', 'bun'];

/** The program of Node: that of this process, or the one in PATH if this is another runtime. @throws SERVE_CONFIG if there is none */
function nodeProgram(versions: Readonly<Record<string, string | undefined>>): string {
  const other = OTHER_RUNTIMES.find((name) => versions[name] !== undefined);
  if (other === undefined) return process.execPath;
  const found = findInPath('node', process.env);
  if (found !== null) return found;
  throw configError(
    `Workers run in Node, and this program runs in ${other}, whose ${process.execPath} is not Node: put node into its PATH.`,
  );
}

function isTypeScript(app: string): boolean {
  return ['.ts', '.mts', '.cts'].includes(extname(app));
}

/**
 * Serves models of a store that no other runtime can serve: models may be registered before they can be served, and the
 * worker reports what is wrong or missing.
 */
export const unservable: Runtime = {
  claims: ({ service }) => service !== null,
  prepare: node.prepare,
};
