/** `banana-serve new <folder>`: writes a small, complete project. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import projects from './projects.json' with { type: 'json' };

interface ProjectKind {
  /** Folders of the templates, relative to the package; the first that has a file's template is used. */
  readonly templates: readonly string[];
  /** Name of the file that the project serves. */
  readonly app: string;
  /** Purposes of the written files, by name. */
  readonly files: Readonly<Record<string, string>>;
  /** Files that are copied, by their names: the path in the package. */
  readonly copies: Readonly<Record<string, string>>;
  /**
   * The command that installs the project's packages. onnxruntime's install script would download CUDA's libraries, and
   * fails without internet.
   */
  readonly install: string;
}

export type ProjectName = keyof typeof projects;

const PACKAGE = new URL('../../../', import.meta.url);

/** Writes the project and returns the text to print. @throws SERVE_CONFIG, with nothing written, if a file exists already */
export function newProject(given: string, cwd: string, name: ProjectName): string {
  const kind: ProjectKind = projects[name];
  const folder = resolve(cwd, given);
  assertFree(folder, given, kind);
  const values = placeholders(folder, kind);
  const contents = Object.keys(kind.files).map(
    (file) => [join(folder, file), contentOf(file, kind, values)] as const,
  );
  try {
    mkdirSync(folder, { recursive: true });
    for (const [path, content] of contents) writeFileSync(path, content, { flag: 'wx' });
  } catch (cause) {
    throw configError(`${given}: ${asSentence((cause as Error).message)} Choose another folder.`);
  }
  return report(relative(cwd, folder), kind);
}

function assertFree(folder: string, given: string, { files }: ProjectKind): void {
  if (!existsSync(folder)) return;
  if (!statSync(folder).isDirectory()) throw configError(`${given} is a file. Choose another folder.`);
  const inTheWay = Object.keys(files).filter((name) => existsSync(join(folder, name)));
  if (inTheWay.length === 0) return;
  const verb = inTheWay.length === 1 ? 'exists' : 'exist';
  throw configError(
    `${given}: ${inTheWay.join(', ')} ${verb} already. Choose another folder; nothing was written.`,
  );
}

/** Values for the templates; versions are those that this package is built and tested with. */
function placeholders(folder: string, { app }: ProjectKind): ReadonlyMap<string, string> {
  const manifest = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as {
    version: string;
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const { version, dependencies, devDependencies } = manifest;
  const known = {
    ...devDependencies,
    ...dependencies,
    'banana-serve': isFromRegistry() ? `^${version}` : `file:banana-serve-${version}.tgz`,
    name: packageName(folder),
    app,
  };
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

function contentOf(name: string, kind: ProjectKind, values: ReadonlyMap<string, string>): string | Buffer {
  const source = kind.copies[name];
  return source === undefined ? filled(name, kind, values) : readFileSync(new URL(source, PACKAGE));
}

/** Template files have no leading dot and end with `.template`, because npm omits or renames some names in a package. */
function filled(name: string, kind: ProjectKind, values: ReadonlyMap<string, string>): string {
  const templates = kind.templates.map(
    (folder) => new URL(`${folder}/${name.replace(/^\./, '')}.template`, PACKAGE),
  );
  const template = templates.find((path) => existsSync(path)) as URL;
  return readFileSync(template, 'utf8').replace(/\{\{(.+?)\}\}/g, (_, key: string) => {
    const value = values.get(key);
    if (value === undefined) throw new Error(`the template of ${name} asks for ${key}, which is not known`);
    return value;
  });
}

function report(folder: string, kind: ProjectKind): string {
  const width = Math.max(...Object.keys(kind.files).map((name) => name.length));
  const files = Object.entries(kind.files).map(([name, purpose]) =>
    `  ${name.padEnd(width)}  ${purpose}`.trimEnd(),
  );
  const enter = folder === '' ? [] : [`  cd ${quoted(folder)}`];
  // A tarball in the project, not a link to the package: the project's image is built from it, too.
  const pack = isFromRegistry()
    ? []
    : [`  npm pack --silent --ignore-scripts ${quoted(fileURLToPath(PACKAGE))}`];
  const next = [...enter, ...pack, `  ${kind.install}`, '  npm test', '  npm run dev'];
  return `Created ${folder === '' ? 'here' : folder}:\n${files.join('\n')}\n\nNext:\n${next.join('\n')}\n`;
}

/** Whether npm has installed this package by its name. A clone, a link and a tarball may be newer than the registry's. */
function isFromRegistry(): boolean {
  try {
    const { packages } = JSON.parse(readFileSync(new URL('../.package-lock.json', PACKAGE), 'utf8')) as {
      packages: Record<string, { readonly resolved?: string }>;
    };
    const installed = packages['node_modules/banana-serve'];
    return installed !== undefined && installed.resolved?.startsWith('file:') !== true;
  } catch {
    return false; // not installed by npm
  }
}

/** The path as a word of a shell. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : JSON.stringify(path);
}
