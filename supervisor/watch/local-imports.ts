/**
 * Which files beside it a file of code loads: what it imports, requires or names as a `new URL` by a relative path. Read
 * from the text, without running or parsing it: a path in a comment counts too, and one that is put together when the code
 * runs is not seen.
 */
import { dirname, extname, join } from 'node:path';
import { pythonImports } from './python-imports.js';

/** `from './a'`, `import './a'`, `import('./a')`, `require('./a')`, `new URL('./a', import.meta.url)` */
const RELATIVE = /\b(?:from|import|require|URL)\s*\(?\s*(["'`])(\.{1,2}\/[^"'`\n]+)\1/g;

const EXTENSIONS: readonly string[] = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.json'];

/** TypeScript is imported by the name of what it would be compiled to. */
const SOURCES: Readonly<Record<string, string>> = {
  '.js': '.ts',
  '.mjs': '.mts',
  '.cjs': '.cts',
  '.jsx': '.tsx',
};

/** Where the files may be that `text`, which is in `file`, loads: several paths for each, of which most are not there. */
export function localImports(file: string, text: string): string[] {
  if (extname(file) === '.py') return pythonImports(file, text);
  const paths = new Set<string>();
  for (const [, , specifier = ''] of text.matchAll(RELATIVE))
    for (const path of placesOf(join(dirname(file), specifier))) paths.add(path);
  return [...paths];
}

function placesOf(path: string): string[] {
  const extension = extname(path);
  const source = SOURCES[extension];
  if (source !== undefined) return [path, path.slice(0, -extension.length) + source];
  if (EXTENSIONS.includes(extension)) return [path];
  return [...EXTENSIONS.map((each) => path + each), ...EXTENSIONS.map((each) => join(path, `index${each}`))];
}
