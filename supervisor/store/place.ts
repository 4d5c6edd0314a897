/**
 * Resolves a url to a path in the store, and the names of a model's files to paths in the model. Urls come over HTTP: nothing outside the store is ever found, read or run.
 *
 * 1. Refuses `..`. A path with leading slashes is relative to the store, too, unless all are whole paths.
 * 2. Follows links; their target must be in the store.
 */
import { realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { ServeError } from '../../protocol/errors.js';
import { archiveInvalid } from './stored-model.js';

/**
 * Returns the real paths of a model and of the store. `folder` is null without a store. `isWhole`: the url must be the whole
 * path of a folder. @throws SERVE_MODEL_NOT_FOUND
 */
export async function locate(
  url: string,
  folder: string | null,
  isWhole = false,
): Promise<{ root: string; path: string }> {
  if (url.includes('..')) throw notFound(`Relative path is not allowed in url: ${url}`);
  if (folder === null) throw notFound('Model store has not been configured.');
  if (isWhole && !isBelow(url, folder)) throw notFound(notWhole(url, folder));
  const root = await realPathOf(folder);
  const path = await realPathOf(isWhole ? url : join(folder, url));
  if (root === null || path === null || path === root) throw notFound(absent(url));
  if (!isBelow(path, root)) throw notFound(`${absent(url)}: a link points outside the store.`);
  if (isWhole && !(await stat(path)).isDirectory()) throw notFound(notWhole(url, folder));
  return { root, path };
}

/**
 * The real path of a file of a model, null if there is none. `shown`: its name in the error. @throws SERVE_ARCHIVE_INVALID
 * for a link out of `root`, a real path
 */
export async function pathWithin(
  root: string,
  path: string,
  shown: string,
  url: string,
): Promise<string | null> {
  const found = await realPathOf(path);
  if (found === null || isBelow(found, root)) return found;
  throw archiveInvalid(url, `${shown} is a link that points outside the model store.`);
}

/** Whether `path` is inside `folder`. Both must be real paths. */
function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** Null if there is no such file. */
async function realPathOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch {
    return null; // for any reason: the file cannot be served
  }
}

function notWhole(url: string, folder: string): string {
  return `Invalid model url: ${url}. It must be the path of a folder below ${folder}.`;
}

function absent(url: string): string {
  return `Model not found in model store: ${url}`;
}

function notFound(message: string): ServeError {
  return new ServeError('SERVE_MODEL_NOT_FOUND', message);
}
