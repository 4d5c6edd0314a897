/** Runtime of apps in Python: the user's interpreter with our worker, which needs only the standard library. */
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Sources } from '../../watch/file-tree.js';
import type { Runtime } from '../runtime.js';
import { findInterpreter } from './find-interpreter.js';

/**
 * Absolute path of the folder of the modules that apps import from this package, which is shipped unchanged beside `dist`:
 * for `PYTHONPATH` in tests and editors.
 */
export const PYTHON_PATH = fileURLToPath(new URL('../../../../worker/python', import.meta.url));
const WORKER_ENTRY = `${PYTHON_PATH}/banana_worker/__main__.py`;
const EXTENSIONS = ['.py'];

/** Finds the files that apps in Python load: relative imports, and modules that may be in the app's folder. */
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

export const python: Runtime = {
  names: ['python', 'python2', 'python3'],
  entries: EXTENSIONS,
  sources: pythonSources,
  leftovers: [/^__pycache__$/, /\.pyc$/],
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  prepare: async ({ app }, setting) => {
    const { path, version, warnings } = await findInterpreter(app, setting);
    return {
      command: [path, WORKER_ENTRY], // the frame `start` names the app
      env: { PYTHONUNBUFFERED: '1' },
      label: 'python',
      mayWait: true,
      values: 'msgpack-values',
      interpreter: { path, version },
      threadVariables: ['OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS'],
      watches: [app],
      batchCure: 'write `inference_batch(inputs, ctxs)`, or give a route `batch=True`',
      stuckAt,
      warnings: warnings.map((text) => `${app}: ${text}`),
    };
  },
};

/** Files of Python and of installed packages, as opposed to the app's. */
const INSTALLED = /\/lib(64)?\/python3[^/]*\/|^</;
const FRAME = /^ {2}File "(.*)", line (\d+) in (.*)$/gm;

/**
 * Returns a sentence; empty if there are no stacks. `left`: threads, the main one last, with their frames, the innermost
 * first, as in
 *
 *     Thread 0x00007f12 (most recent call first):
 *       File "/app/app.py", line 3 in init
 */
export function stuckAt(left: string): string {
  const main = left.split(/^Thread /m).at(-1) ?? '';
  const frames = [...main.matchAll(FRAME)].map(([, file = '', line, name]) => ({
    file,
    place: `${file}:${line}`,
    name,
  }));
  const innermost = frames[0];
  if (innermost === undefined) return '';
  const ofApp = frames.find(({ file }) => !file.startsWith(PYTHON_PATH) && !INSTALLED.test(file));
  const where = ofApp === undefined ? 'outside the app' : `at ${ofApp.place}`;
  const inside = ofApp === innermost ? '' : `, in ${innermost.name} of ${innermost.place}`;
  return `It hung ${where}${inside}, while native code held the GIL.`;
}
