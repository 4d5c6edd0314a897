/** Finds the files that apps in Python load: relative imports, and modules that may be in the app's folder. */
import { dirname, join } from 'node:path';
import type { Sources } from '../../watch/sources.js';

export const pythonSources: Sources = {
  languages: ['Python'],
  extensions: ['.py'],
  foldersOfOthers: ['site-packages', 'venv', '__pycache__'],
  localImports: (file, text) => {
    const taken = [...text.matchAll(FROM)].flatMap(
      ([, dots = '', module = '', inParentheses, onLine = '']) => {
        const base = dots === '' ? '' : join(dirname(file), ...Array<string>(dots.length - 1).fill('..'));
        return candidatesOf(base, module, namesIn(inParentheses ?? onLine));
      },
    );
    const modules = [...text.matchAll(IMPORT)].flatMap(([, list = '']) => namesIn(list));
    return [...new Set([...taken, ...modules.flatMap((module) => candidatesOf('', module, []))])];
  },
};

/**
 * `from .a import b, c`; the names may be in parentheses, over several lines with comments. The expression is unambiguous
 * for every text, because backtracking over a long line of blanks or dots would take minutes.
 */
const FROM =
  /^[ \t]*from[ \t]+(?![ \t])(\.*)(?:[ \t]*(\w[\w.]*))?[ \t]+import[ \t]+(?:\(((?:[^()#]|#[^\n]*\n)*)\)|([^#\n]*))/gm;

/** `import a, b.c as d` */
const IMPORT = /^[ \t]*import[ \t]+([^#\n]+)/gm;

/** The modules of `a.b as c, d`, without aliases and comments. */
function namesIn(list: string): string[] {
  const names = list.replace(/#.*$/gm, '').split(',');
  return names.map((name) => name.trim().split(/\s/)[0] ?? '').filter((name) => /^[\w.]+$/.test(name));
}

/** Candidate files of a module: its parent packages, itself, and `names`, each of which may be a module too. */
function candidatesOf(base: string, module: string, names: readonly string[]): string[] {
  const parts = module.split('.').filter((part) => part !== '');
  const modules = parts.map((_, i) => join(base, ...parts.slice(0, i + 1)));
  const inside = names.map((name) => join(base, ...parts, name));
  const own = parts.length === 0 ? [join(base, '__init__.py')] : [];
  return [...own, ...[...modules, ...inside].flatMap((path) => [`${path}.py`, join(path, '__init__.py')])];
}
