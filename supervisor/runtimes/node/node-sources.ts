/**
 * The code of apps in JavaScript and TypeScript. A file loads what it imports, requires or names as a `new URL` by a
 * relative path: a path in a comment counts too, and one that is put together when the code runs is not seen.
 */
import { dirname, extname, join } from 'node:path';
import type { Sources } from '../../watch/sources.js';

const EXTENSIONS: readonly string[] = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx'];

export const nodeSources: Sources = {
  languages: ['TypeScript', 'JavaScript'],
  extensions: EXTENSIONS,
  foldersOfOthers: ['node_modules', 'dist', 'build', 'out', 'coverage'],
  localImports: (file, text) => {
    const specifiers = [...text.matchAll(RELATIVE)].map(([, , specifier = '']) => specifier);
    return [...new Set(specifiers.flatMap((specifier) => placesOf(join(dirname(file), specifier))))];
  },
};

/** `from './a'`, `import './a'`, `import('./a')`, `require('./a')`, `new URL('./a', import.meta.url)` */
const RELATIVE = /\b(?:from|import|require|URL)\s*(?:\(\s*)?(["'`])(\.{1,2}\/[^"'`\n]+)\1/g;

/** What can be imported, with and without its extension. */
const IMPORTED: readonly string[] = [...EXTENSIONS, '.json'];

/** TypeScript is imported by the name of what it would be compiled to. */
const SOURCES: Readonly<Record<string, string>> = {
  '.js': '.ts',
  '.mjs': '.mts',
  '.cjs': '.cts',
  '.jsx': '.tsx',
};

function placesOf(path: string): string[] {
  const extension = extname(path);
  const source = SOURCES[extension];
  if (source !== undefined) return [path, path.slice(0, -extension.length) + source];
  if (IMPORTED.includes(extension)) return [path];
  return [...IMPORTED.map((each) => path + each), ...IMPORTED.map((each) => join(path, `index${each}`))];
}
