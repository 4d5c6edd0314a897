/**
 * Finds the files that apps in JavaScript and TypeScript load: relative paths of `import`, `require` and `new URL`. Paths in
 * comments count too; paths that are computed at run time are not found.
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
    return [...new Set(specifiers.flatMap((specifier) => candidatesOf(join(dirname(file), specifier))))];
  },
};

/** `from './a'`, `import './a'`, `import('./a')`, `require('./a')`, `new URL('./a', import.meta.url)` */
const RELATIVE = /\b(?:from|import|require|URL)\s*(?:\(\s*)?(["'`])(\.{1,2}\/[^"'`\n]+)\1/g;

/** Extensions that an import may have or omit. */
const IMPORTED: readonly string[] = [...EXTENSIONS, '.json'];

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
