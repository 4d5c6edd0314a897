/** Finds the app a person meant. */
import { existsSync, lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { configError } from '../../protocol/errors.js';
import { APP_EXTENSIONS } from '../runtimes/index.js';
import { suggest } from '../options/suggest.js';

const DEFAULT_NAMES = APP_EXTENSIONS.map((extension) => `app${extension}`);

/** What a folder that somebody names may have instead: a custom service. */
const SERVICE_NAMES = APP_EXTENSIONS.map((extension) => `service${extension}`);

/**
 * Absolute path of the app. `given` null: `app.ts` and its like in `folder`. `place`: where it was written, if that has to
 * be said. @throws SERVE_CONFIG with a suggestion
 */
export function findApp(given: string | null, folder: string, place = ''): string {
  const fail = (message: string): never => {
    throw configError(place === '' ? message : `${place}: ${message}`);
  };
  const find = (within: string, names: readonly string[], otherwise: string): string =>
    appIn(within, names) ?? fail(deadLinkIn(within, names, folder) ?? otherwise);
  if (given === null) {
    const none = `no app was given, and there is no ${DEFAULT_NAMES.join(', ')} in ${folder}.`;
    return find(folder, DEFAULT_NAMES, `${none} Run: banana-serve ./app.ts`);
  }
  const path = resolve(folder, given);
  if (!existsSync(path))
    return fail(deadLink(path, given) ?? `${given}: no such file.${hintFor(path, folder)}`);
  if (statSync(path).isDirectory()) {
    const none = `${given} is a folder without ${DEFAULT_NAMES.join(', ')}, and without a ${SERVICE_NAMES[0]}.`;
    return find(path, [...DEFAULT_NAMES, ...SERVICE_NAMES], none);
  }
  if (APP_EXTENSIONS.includes(extname(path))) return path;
  return fail(
    `${given}: an app is one of ${APP_EXTENSIONS.join(' ')}, not ${extname(path) || 'a file without extension'}.`,
  );
}

/** Whether a folder holds an app that is served where nobody names one. */
export function holdsApp(folder: string): boolean {
  return appIn(folder) !== null;
}

function appIn(folder: string, names: readonly string[] = DEFAULT_NAMES): string | null {
  const found = names.map((name) => join(folder, name)).find((path) => existsSync(path));
  return found ?? null;
}

/** Says that one of these names is a link that leads to nothing; null if none is. */
function deadLinkIn(within: string, names: readonly string[], folder: string): string | null {
  const paths = names.map((name) => join(within, name));
  return paths.map((path) => deadLink(path, relative(folder, path))).find((text) => text !== null) ?? null;
}

/** Says what is wrong with a link that leads to no file; null if it is no such link. */
function deadLink(path: string, shown: string): string | null {
  if (!isLink(path)) return null;
  try {
    statSync(path);
    return null;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const why = WHY_DEAD[code] ?? `cannot be followed (${code})`;
    const steps = code === 'ENOENT' ? stepsOf(path) : [readlinkSync(path)];
    return `${shown} is a link to ${steps.join(', that one to ')}, which ${why}.`;
  }
}

/** Where a link leads, and where each link leads that it leads to. */
function stepsOf(path: string): string[] {
  const steps: string[] = [];
  for (let link = path; isLink(link) && steps.length < MOST_LINKS;) {
    const target = readlinkSync(link);
    steps.push(target);
    link = resolve(dirname(link), target);
  }
  return steps;
}

/** As many as the system follows. */
const MOST_LINKS = 40;

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

const WHY_DEAD: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ELOOP: 'leads back to itself',
};

function hintFor(path: string, folder: string): string {
  const parent = dirname(path);
  if (!existsSync(parent)) return ` The folder ${relative(folder, parent) || parent} does not exist either.`;
  const apps = readdirSync(parent).filter((name) => APP_EXTENSIONS.includes(extname(name)));
  const close = suggest(basename(path), apps);
  return close === null ? '' : ` Did you mean ${relative(folder, join(parent, close))}?`;
}
