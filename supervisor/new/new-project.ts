/** `banana-serve new <folder>`: writes a small, complete project. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';

/** A kind of project. */
export interface ProjectKind {
  /** Folder of the templates, relative to the package. */
  readonly templates: string;
  /** Names of the written files, with their purposes. */
  readonly files: readonly (readonly [name: string, purpose: string])[];
}

export const TYPESCRIPT_PROJECT: ProjectKind = {
  templates: 'templates/new',
  files: [
    ['app.ts', 'your model: init() and inference()'],
    ['app.test.ts', 'a test of it, over HTTP'],
    ['package.json', 'npm start, npm run dev, npm test'],
    ['tsconfig.json', 'for your editor, and for npm test'],
    ['Dockerfile', 'a container that finishes its calls when it is stopped'],
    ['.dockerignore', ''],
    ['.gitignore', ''],
    ['.npmrc', 'settings for onnxruntime-node, in case you use it'],
  ],
};

export const PYTHON_PROJECT: ProjectKind = {
  templates: 'templates/new-python',
  files: [
    ['app.py', 'your model: init() and inference()'],
    ['test_app.py', 'a test of it, over HTTP; pytest runs it, too'],
    ['requirements.txt', 'what the app imports'],
    ['package.json', 'npm start, npm run dev, npm test'],
    ['Dockerfile', 'a container that finishes its calls when it is stopped'],
    ['.dockerignore', ''],
    ['.gitignore', ''],
  ],
};

const PACKAGE = new URL('../../../', import.meta.url);

/** Writes the project and returns the text to print. @throws SERVE_CONFIG, with nothing written, if a file exists already */
export function newProject(given: string, cwd: string, kind: ProjectKind): string {
  const folder = resolve(cwd, given);
  assertFree(folder, given, kind);
  const values = placeholders(folder);
  const texts = kind.files.map(([name]) => [join(folder, name), filled(name, kind, values)] as const);
  try {
    mkdirSync(folder, { recursive: true });
    for (const [path, text] of texts) writeFileSync(path, text, { flag: 'wx' });
  } catch (cause) {
    throw configError(`${given}: ${asSentence((cause as Error).message)} Choose another folder.`);
  }
  return report(relative(cwd, folder), kind);
}

function assertFree(folder: string, given: string, { files }: ProjectKind): void {
  if (!existsSync(folder)) return;
  if (!statSync(folder).isDirectory()) throw configError(`${given} is a file. Choose another folder.`);
  const inTheWay = files.map(([name]) => name).filter((name) => existsSync(join(folder, name)));
  if (inTheWay.length === 0) return;
  const verb = inTheWay.length === 1 ? 'exists' : 'exist';
  throw configError(
    `${given}: ${inTheWay.join(', ')} ${verb} already. Choose another folder; nothing was written.`,
  );
}

/** Values for the templates; versions are those that this package is built and tested with. */
function placeholders(folder: string): ReadonlyMap<string, string> {
  const manifest = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as {
    version: string;
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const { version, dependencies, devDependencies } = manifest;
  const known = { ...devDependencies, ...dependencies, 'banana-serve': version, name: packageName(folder) };
  return new Map(Object.entries(known));
}

/** The folder's name, changed to what npm allows. */
function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9._~-]+/g, '-')
    .replace(/^[._-]+/, '');
  return name === '' || name === 'banana-serve' ? 'my-model' : name;
}

/** Template files have no leading dot and end with `.template`, because npm omits or renames some names in a package. */
function filled(name: string, kind: ProjectKind, values: ReadonlyMap<string, string>): string {
  const template = new URL(`${kind.templates}/${name.replace(/^\./, '')}.template`, PACKAGE);
  return readFileSync(template, 'utf8').replace(/\{\{(.+?)\}\}/g, (_, key: string) => {
    const value = values.get(key);
    if (value === undefined) throw new Error(`the template of ${name} asks for ${key}, which is not known`);
    return value;
  });
}

function report(folder: string, kind: ProjectKind): string {
  const width = Math.max(...kind.files.map(([name]) => name.length));
  const files = kind.files.map(([name, purpose]) => `  ${name.padEnd(width)}  ${purpose}`.trimEnd());
  const enter = folder === '' ? [] : [`  cd ${quoted(folder)}`];
  const next = [...enter, ...installing(), '  npm test', '  npm run dev'];
  return `Created ${folder === '' ? 'here' : folder}:\n${files.join('\n')}\n\nNext:\n${next.join('\n')}\n`;
}

/** Lines that install the project's packages. A clone is packed: what is in it may not be published. */
function installing(): string[] {
  const isClone = existsSync(new URL('tsconfig.base.json', PACKAGE)); // it is not in the package
  if (!isClone) return ['  npm install'];
  return [`  npm pack ${quoted(fileURLToPath(PACKAGE))}`, '  npm install ./banana-serve-*.tgz'];
}

/** The path as a word of a shell. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : JSON.stringify(path);
}
