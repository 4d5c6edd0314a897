/** As `local-imports.ts`, of a file in Python: what it imports, by a relative name or by one that may lie in the app's folder. */
import { dirname, join } from 'node:path';

/** `from .a import b, c`; what is imported may be in parentheses, over several lines. */
const FROM = /^[ \t]*from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^#\n]*))/gm;

/** `import a, b.c as d` */
const IMPORT = /^[ \t]*import[ \t]+([^#\n]+)/gm;

/** Where the modules may be that `text`, which is in `file`, imports: paths below the app's folder, of which most are not there. */
export function pythonImports(file: string, text: string): string[] {
  const paths = new Set<string>();
  for (const [, dots = '', module = '', inParentheses, onLine = ''] of text.matchAll(FROM)) {
    const names = namesIn(inParentheses ?? onLine);
    const base = dots === '' ? '' : join(dirname(file), ...Array<string>(dots.length - 1).fill('..'));
    for (const path of placesOf(base, module, names)) paths.add(path);
  }
  for (const [, list = ''] of text.matchAll(IMPORT))
    for (const module of namesIn(list)) for (const path of placesOf('', module, [])) paths.add(path);
  return [...paths];
}

/** `a.b as c, d` without what they are called here, and without comments. */
function namesIn(list: string): string[] {
  const names = list.replace(/#.*$/gm, '').split(',');
  return names.map((name) => name.trim().split(/\s/)[0] ?? '').filter((name) => /^[\w.]+$/.test(name));
}

/** A module runs those that it stands in first; each name that is taken out of it may be a module, too. */
function placesOf(base: string, module: string, names: readonly string[]): string[] {
  const parts = module.split('.').filter((part) => part !== '');
  const modules = parts.map((_, i) => join(base, ...parts.slice(0, i + 1)));
  const inside = names.map((name) => join(base, ...parts, name));
  const own = parts.length === 0 ? [join(base, '__init__.py')] : [];
  return [...own, ...[...modules, ...inside].flatMap((path) => [`${path}.py`, join(path, '__init__.py')])];
}
