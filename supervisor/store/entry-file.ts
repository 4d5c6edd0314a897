/**
 * Which file of a model's folder its workers load: the one that the handler names, else one that is called like one, else
 * the only one. The file decides what runs it; what a person says of the runtime counts where there is one for each.
 *
 * Whether there is such a file, and whether it can be served, is found out by the first worker: models may be registered
 * before. What leads out of the model is refused here.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { APP_EXTENSIONS, extensionsFor, runtimeNameOf } from '../runtimes/index.js';
import { archiveInvalid } from './archive-invalid.js';
import { isBelow, realPathOf } from './place.js';
import type { StoreQuery } from './stored-model.js';

export interface EntryFile {
  /** Absolute path. It need not be there; the model's folder itself, if nothing says which of its files is meant. */
  readonly app: string;
  /** Function or class in it; empty: found by rule. */
  readonly handler: string;
}

/** Names, without extension, of the file that is meant where no handler says so, the likelier ones first. */
export const ENTRY_NAMES: readonly string[] = ['service', 'app', 'index'];

/** A model's folder. Both paths are real. */
export interface ModelFolder {
  readonly folder: string;
  /** No file of the model lies outside of this one. */
  readonly root: string;
  /** What the model is called where it lies. */
  readonly stem: string;
}

/** @throws SERVE_ARCHIVE_INVALID */
export async function entryOfFolder(
  { folder, root, stem }: ModelFolder,
  query: StoreQuery,
): Promise<EntryFile> {
  const { file, name } = parseHandler(query.handler ?? '');
  if (file.includes('..')) throw archiveInvalid(query.url, `the handler ${file} leads out of it.`);
  const wanted = file === '' ? await usualFiles(folder, stem, query) : filesOf(file, query);
  for (const path of wanted) {
    const found = await realPathOf(join(folder, path));
    if (found === null || !(await stat(found)).isFile()) continue;
    if (!isBelow(found, root))
      throw archiveInvalid(query.url, `${path} is a link that leads out of the model store.`);
    return { app: found, handler: name };
  }
  if (file === '') return { app: folder, handler: name };
  const there = await readdir(join(folder, dirname(file))).catch(() => readdir(folder));
  return { app: join(folder, missingFile(file, there, query)), handler: name };
}

/** For a model that is a single file, whose path is real. The file of another handler is looked for in it, in vain. */
export function entryOfFile(path: string, query: StoreQuery): EntryFile {
  const { file, name } = parseHandler(query.handler ?? '');
  const isOwn = file === '' || stemOf(basename(file)) === stemOf(basename(path));
  return { app: isOwn ? path : join(path, missingFile(basename(file), [path], query)), handler: name };
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

/** What is missed where a handler's file is not there: as it is written, else in the language of the files that are there. */
function missingFile(file: string, there: readonly string[], query: StoreQuery): string {
  if (APP_EXTENSIONS.includes(extname(file))) return file;
  const isTold = (query.runtime ?? '') !== '';
  const likeliest = isTold ? undefined : likeliestOf(there, query);
  return `${file}${likeliest ?? extensions(query)[0]}`;
}

async function usualFiles(folder: string, stem: string, query: StoreQuery): Promise<string[]> {
  const names = [...ENTRY_NAMES, stem, basename(folder)];
  const usual = names.flatMap((name) => extensions(query).map((extension) => name + extension));
  const apps = (await readdir(folder)).filter(isAppFile);
  const likeliest = likeliestOf(apps, query);
  const only = apps.filter((app) => runtimeNameOf(extname(app)) === runtimeNameOf(likeliest ?? ''));
  return only.length === 1 ? [...usual, ...only] : usual;
}

/** Which of their extensions comes first. */
function likeliestOf(files: readonly string[], query: StoreQuery): string | undefined {
  const apps = files.filter(isAppFile);
  return extensions(query).find((extension) => apps.some((app) => extname(app) === extension));
}

function extensions({ runtime = '' }: StoreQuery): readonly string[] {
  return extensionsFor(runtime);
}

function stemOf(file: string): string {
  const extension = extname(file);
  return APP_EXTENSIONS.includes(extension) ? file.slice(0, -extension.length) : file;
}
