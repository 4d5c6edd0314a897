/** Finds the file of an app, from a path or in a folder, and explains why it or another path is not found. */
import { existsSync, lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { configError } from '../../protocol/errors.js';
import { EXTENSIONS, SERVED_EXTENSIONS, onlyModelOf } from '../runtimes/index.js';
import { didYouMean } from '../../protocol/text/sentences.js';

const DEFAULT_NAMES = EXTENSIONS.entries.map((extension) => `app${extension}`);

/** A folder given by its path may have a custom service instead of an app. */
const SERVICE_NAMES = EXTENSIONS.entries.map((extension) => `service${extension}`);

/**
 * Absolute path of the app. `given` null: looks for `app.ts` and the other default names in `folder`. `place`: the setting
 * that names the app, for the message; may be empty. @throws SERVE_CONFIG with a suggestion
 */
export function findApp(given: string | null, folder: string, place = ''): string {
  const fail = (message: string): never => {
    throw configError(place === '' ? message : `${place}: ${message}`);
  };
  const find = (within: string, names: readonly string[], otherwise: string): string =>
    appIn(within, names) ??
    aloneIn(within) ??
    fail(deadLinkIn(within, names, folder) ?? otherwise + modelHint(within));
  if (given === null) {
    const none = `no app was given, and there is no ${DEFAULT_NAMES.join(', ')} in ${folder}.`;
    return find(folder, DEFAULT_NAMES, `${none} Run: banana-serve ./app.ts`);
  }
  const path = resolve(folder, given);
  const [, file = ''] = /^(.+\.\w+):[\w$]+$/.exec(given) ?? [];
  if (file !== '' && !existsSync(path) && existsSync(resolve(folder, file)))
    return fail(withHandlerText(given, file));
  if (!existsSync(path))
    return fail(deadLink(path, given) ?? `${given}: no such file.${hintFor(path, folder)}`);
  if (statSync(path).isDirectory()) {
    const none = `${given} is a folder without ${DEFAULT_NAMES.join(', ')}, and without a ${SERVICE_NAMES[0]}.`;
    return find(path, [...DEFAULT_NAMES, ...SERVICE_NAMES], none);
  }
  if (SERVED_EXTENSIONS.includes(extname(path))) return path;
  return fail(
    `${given}: an app is one of ${SERVED_EXTENSIONS.join(' ')}, not ${extname(path) || 'a file without extension'}.`,
  );
}

/** `given`: `file:Class`, as the handler of a model in a store may be written. */
function withHandlerText(given: string, file: string): string {
  const store = `--model-store ${dirname(file)} --models ${basename(file)} --default-handler ${basename(given)}`;
  return `${given}: an app is given by its file alone, ${file}. To name a function or class in it, serve it as a model of a store: ${store}`;
}

/** Whether the folder has an app with a default name. */
export function holdsApp(folder: string): boolean {
  return appIn(folder) !== null;
}

function appIn(folder: string, names: readonly string[] = DEFAULT_NAMES): string | null {
  const found = names.map((name) => join(folder, name)).find((path) => existsSync(path));
  return found ?? null;
}

/** The only model of a folder without code, if it has just one, or that of a format's folder, as in `onnx/model.onnx`. */
function aloneIn(folder: string): string | null {
  const name = onlyModelOf(readdirSync(folder));
  if (name !== null) return join(folder, name);
  const exported = EXTENSIONS.alone.map((extension) => join(folder, extension.slice(1), `model${extension}`));
  return exported.find((path) => existsSync(path)) ?? null;
}

/** A sentence on the models of a folder that is not served by one; empty if it has none. */
function modelHint(folder: string): string {
  const models = readdirSync(folder).filter((name) => EXTENSIONS.alone.includes(extname(name)));
  if (models.length === 0) return '';
  return ` To serve ${new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(models)} without code, name the file.`;
}

/** Returns an error text if one of these names is a broken link, else null. */
function deadLinkIn(within: string, names: readonly string[], folder: string): string | null {
  const paths = names.map((name) => join(within, name));
  return paths.map((path) => deadLink(path, relative(folder, path))).find((text) => text !== null) ?? null;
}

/** Returns why the link at `path` cannot be followed; null if it can, or is not a link. `shown`: the path in the text. */
function deadLink(path: string, shown: string): string | null {
  if (!isLink(path)) return null;
  try {
    statSync(path);
    return null;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const why = WHY_DEAD[code] ?? `cannot be followed (${code})`;
    const steps = code === 'ENOENT' ? stepsOf(path) : [readlinkSync(path)];
    return `${shown} is a link to ${steps.join(', which is a link to ')}, which ${why}.`;
  }
}

/** The targets of a chain of links, in order. */
function stepsOf(path: string): string[] {
  const steps: string[] = [];
  for (let link = path; isLink(link) && steps.length < MOST_LINKS;) {
    const target = readlinkSync(link);
    steps.push(target);
    link = resolve(dirname(link), target);
  }
  return steps;
}

/** The system follows as many. */
const MOST_LINKS = 40;

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

const WHY_DEAD: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ELOOP: 'leads back to itself',
};

/** A sentence, after a space, with the path beside `given` whose name is nearest; empty if none is near. */
export function nearbyHint(given: string, folder: string): string {
  const names = namesIn(resolve(folder, dirname(given)));
  return didYouMean(basename(given), names, ' Did', (name) => join(dirname(given), name));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // it does not exist, or may not be read
  }
}

function hintFor(path: string, folder: string): string {
  const parent = dirname(path);
  if (!existsSync(parent)) return ` The folder ${relative(folder, parent) || parent} does not exist either.`;
  const apps = namesIn(parent).filter((name) => SERVED_EXTENSIONS.includes(extname(name)));
  return didYouMean(basename(path), apps, ' Did', (name) => relative(folder, join(parent, name)));
}
