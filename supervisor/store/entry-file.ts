/**
 * Finds the file of a model's folder that its workers load: the handler's file, else a file with a usual name, else the
 * only app file, else the only
 * model of a folder without code. The file decides the runtime; a given runtime decides between files of several runtimes.
 *
 * The first worker finds out whether the file exists and can be served, because models may be registered before. Paths
 * that point outside the model are refused here.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import {
  EXTENSIONS,
  SERVED_EXTENSIONS,
  entryExtensionsFor,
  onlyModelOf,
  runtimeNameOf,
} from '../runtimes/index.js';
import { pathWithin } from './place.js';
import { archiveInvalid, type StoreQuery, type StoredModel } from './stored-model.js';

/** Usual names of the file, without extension, in order of preference; used if no handler names one. */
export const ENTRY_NAMES: readonly string[] = ['service', 'app', 'index'];

/** A model's folder. Both paths are real paths. */
export interface ModelFolder {
  readonly folder: string;
  /** The folder that must contain all files of the model. */
  readonly root: string;
  /** The name of the model's folder or archive. */
  readonly stem: string;
}

/**
 * `app`: absolute path, which may not exist; the model's folder itself if no file was found. `handler`: function or class in
 * the file; empty if it is found by rule. @throws SERVE_ARCHIVE_INVALID
 */
export async function entryOfFolder(
  { folder, root, stem }: ModelFolder,
  query: StoreQuery,
): Promise<{ app: string; handler: string }> {
  const { file, name } = parseHandler(query.handler ?? '');
  if (file.includes('..')) throw archiveInvalid(query.url, `the handler ${file} is outside the model.`);
  const wanted = file === '' ? await usualFiles(folder, stem, query) : filesOf(file, query);
  for (const path of wanted) {
    const found = await pathWithin(root, join(folder, path), path, query.url);
    if (found === null || !(await stat(found)).isFile()) continue;
    // The target of a link may have no extension, as in a cache of files by their digests.
    return { app: extname(found) === extname(path) ? found : join(folder, path), handler: name };
  }
  if (file === '') return { app: folder, handler: name };
  const there = await readdir(join(folder, dirname(file))).catch(() => readdir(folder));
  return { app: join(folder, missingFile(file, there, query)), handler: name };
}

/**
 * The versions of a model that lies in a folder as Triton's repositories have it (`name/1/model.onnx`), the highest first; empty if no folder has one. @throws SERVE_ARCHIVE_INVALID for a link out of
 * `root`
 */
export async function versionFiles(
  { folder, root }: ModelFolder,
  url: string,
): Promise<Pick<StoredModel, 'version' | 'app'>[]> {
  const names = (await readdir(folder)).filter((name) => /^[1-9]\d{0,17}$/.test(name));
  const versions = names.sort((a, b) => Number(b) - Number(a));
  const found: Pick<StoredModel, 'version' | 'app'>[] = [];
  for (const version of versions) {
    const file = await modelIn(join(folder, version));
    if (file !== null && (await pathWithin(root, file, `${version}/${basename(file)}`, url)) !== null)
      found.push({ version, app: file });
  }
  return found;
}

/** The file with the name that Triton looks for by default. */
async function modelIn(folder: string): Promise<string | null> {
  const files = await readdir(folder).catch(() => []);
  const name = files.find(
    (file) => file === `model${extname(file)}` && EXTENSIONS.alone.includes(extname(file)),
  );
  return name === undefined ? null : join(folder, name);
}

/** For a model that is a single file, given by its real path. If the handler names another file, `app` does not exist. */
export function entryOfFile(path: string, query: StoreQuery): { app: string; handler: string } {
  const { handler = '' } = query;
  const { file, name } = parseHandler(handler);
  return {
    app: isHandlerIn(path, handler) ? path : join(path, missingFile(basename(file), [path], query)),
    handler: name,
  };
}

/** Whether a handler is in this file: it names the file, or none. */
export function isHandlerIn(path: string, handler: string): boolean {
  const { file } = parseHandler(handler);
  return file === '' || stemOf(basename(file)) === stemOf(basename(path));
}

/** Whether a single file of this name is a model; type declarations are none. */
export function isModelFile(name: string): boolean {
  return SERVED_EXTENSIONS.includes(extname(name)) && !isDeclaration(name);
}

/** Whether a file of this name may be code that is the entry of a folder; else it is a model without any. */
export function isEntry(name: string): boolean {
  return EXTENSIONS.entries.includes(extname(name)) && !isDeclaration(name);
}

function isDeclaration(name: string): boolean {
  return /\.d\.[cm]?ts$/.test(name);
}

/** `file`, or `file:function`. */
function parseHandler(text: string): { file: string; name: string } {
  const [file = '', ...rest] = text.split(':');
  return { file: file.trim(), name: rest.join(':').trim() };
}

/** Candidates for the file of a handler: as written, with an extension, or in the folder itself. */
function filesOf(file: string, query: StoreQuery): string[] {
  const stems = [...new Set([stemOf(file), stemOf(basename(file))])];
  const others = stems.flatMap((stem) => extensions(query).map((extension) => stem + extension));
  return EXTENSIONS.entries.includes(extname(file)) ? [file, ...others] : others;
}

/** Name of a missing handler file, for errors: as written, else with the extension of the existing files. */
function missingFile(file: string, there: readonly string[], query: StoreQuery): string {
  if (EXTENSIONS.entries.includes(extname(file))) return file;
  const isTold = (query.runtime ?? '') !== '';
  const likeliest = isTold ? undefined : likeliestOf(there, query);
  return `${file}${likeliest ?? extensions(query)[0]}`;
}

async function usualFiles(folder: string, stem: string, query: StoreQuery): Promise<string[]> {
  const names = [...ENTRY_NAMES, stem, basename(folder)];
  const usual = names.flatMap((name) => extensions(query).map((extension) => name + extension));
  const files = await readdir(folder);
  const model = onlyModelOf(files);
  if (model !== null) return [...usual, model];
  const apps = files.filter(isEntry);
  const likeliest = likeliestOf(apps, query);
  const only = apps.filter((app) => runtimeNameOf(extname(app)) === runtimeNameOf(likeliest ?? ''));
  return only.length === 1 ? [...usual, ...only] : usual;
}

/** The preferred extension among those of `files`. */
function likeliestOf(files: readonly string[], query: StoreQuery): string | undefined {
  const apps = files.filter(isEntry);
  return extensions(query).find((extension) => apps.some((app) => extname(app) === extension));
}

function extensions({ runtime = '' }: StoreQuery): readonly string[] {
  return entryExtensionsFor(runtime);
}

function stemOf(file: string): string {
  const extension = extname(file);
  return EXTENSIONS.entries.includes(extension) ? file.slice(0, -extension.length) : file;
}
