/**
 * Which file of a model's folder its workers load: the one that the handler names, else one that is called like one, else
 * the only one. The file decides what runs it; what a person says of the runtime counts where there is one for each.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { ServeError } from '../../protocol/errors.js';
import { APP_EXTENSIONS } from '../runtimes/index.js';
import { isBelow, realPathOf } from './place.js';
import type { StoreQuery } from './stored-model.js';

export interface EntryFile {
  /** Absolute path. The one that a handler names may not be there: that is found out by the first worker. */
  readonly app: string;
  /** Function or class in it; empty: found by rule. */
  readonly handler: string;
}

const PYTHON = '.py';

/** Names, without extension, of the file that is meant where no handler says so, the likelier ones first. */
export const ENTRY_NAMES: readonly string[] = ['service', 'app', 'index'];

/** Both paths are real. @throws SERVE_ARCHIVE_INVALID, SERVE_MODEL_NOT_FOUND */
export async function entryOfFolder(folder: string, root: string, query: StoreQuery): Promise<EntryFile> {
  const { file, name } = parseHandler(query.handler ?? '');
  if (file.includes('..')) throw invalid(query, `the handler ${file} leads out of it.`);
  const wanted = file === '' ? await usualFiles(folder, query) : filesOf(file, query);
  for (const path of wanted) {
    const found = await realPathOf(join(folder, path));
    if (found === null || !(await stat(found)).isFile()) continue;
    if (!isBelow(found, root)) throw invalid(query, `${path} is a link that leads out of the model store.`);
    return { app: servable(found, query), handler: name };
  }
  if (file === '')
    throw invalid(query, `it holds no ${ENTRY_NAMES.join(', no ')}: name its file as handler.`);
  return { app: join(folder, wanted[0] as string), handler: name };
}

/** For a model that is a single file, whose path is real. @throws SERVE_ARCHIVE_INVALID */
export function entryOfFile(path: string, query: StoreQuery): EntryFile {
  const { file, name } = parseHandler(query.handler ?? '');
  const stem = stemOf(basename(path));
  const isOwn = file === '' || stemOf(basename(file)) === stem;
  if (!isOwn)
    throw invalid(query, `it is a file, and ${file} is another; its handler is such as ${stem}:handle.`);
  return { app: servable(path, query), handler: name };
}

/** Whether a file can be served, by its name: declarations of types are code for nobody. */
export function isAppFile(name: string): boolean {
  return APP_EXTENSIONS.includes(extname(name)) && !/\.d\.[cm]?ts$/.test(name);
}

/** `file`, or `file:function`. */
function parseHandler(text: string): { file: string; name: string } {
  const [file = '', ...rest] = text.split(':');
  return { file: file.trim(), name: rest.join(':').trim() };
}

/** Where the file of a handler may be: as it is written, with an extension, or in the folder itself. */
function filesOf(file: string, query: StoreQuery): string[] {
  const stems = [...new Set([stemOf(file), stemOf(basename(file))])];
  const others = stems.flatMap((stem) => extensions(query).map((extension) => stem + extension));
  return APP_EXTENSIONS.includes(extname(file)) ? [file, ...others] : others;
}

async function usualFiles(folder: string, query: StoreQuery): Promise<string[]> {
  const names = [...ENTRY_NAMES, basename(folder)];
  const usual = names.flatMap((name) => extensions(query).map((extension) => name + extension));
  const apps = (await readdir(folder)).filter(isAppFile);
  return apps.length === 1 ? [...usual, ...apps] : usual;
}

function extensions({ runtime = '' }: StoreQuery): readonly string[] {
  return runtime.startsWith('python') ? [PYTHON, ...APP_EXTENSIONS] : [...APP_EXTENSIONS, PYTHON];
}

function stemOf(file: string): string {
  const extension = extname(file);
  const isKnown = extension === PYTHON || APP_EXTENSIONS.includes(extension);
  return isKnown ? file.slice(0, -extension.length) : file;
}

function servable(path: string, query: StoreQuery): string {
  if (isAppFile(path)) return path;
  const isPython = extname(path) === PYTHON;
  const what = isPython
    ? 'is in Python, which is not served'
    : 'is no code that is served, and archives are not';
  throw invalid(query, `${basename(path)} ${what}; a model is one of ${APP_EXTENSIONS.join(' ')}.`);
}

function invalid({ url }: StoreQuery, what: string): ServeError {
  return new ServeError('SERVE_ARCHIVE_INVALID', `${url}: ${what}`);
}
