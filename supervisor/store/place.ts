/**
 * Where in the store a url leads. What is asked for comes over HTTP: nothing outside the store is ever found, read or run.
 *
 * 1. Only relative paths without `..` are looked for, below the store.
 * 2. Links are followed; where they lead must be in the store.
 */
import { realpath } from 'node:fs/promises';
import { isAbsolute, join, sep } from 'node:path';
import { ServeError } from '../../protocol/errors.js';

/**
 * The real path of what a url names in the store, and that of the store. `folder` null: there is no store.
 * @throws SERVE_MODEL_NOT_FOUND
 */
export async function locate(url: string, folder: string | null): Promise<{ root: string; path: string }> {
  if (url.includes('..')) throw notFound(`Relative path is not allowed in url: ${url}`);
  if (folder === null) throw notFound('Model store has not been configured.');
  if (isAbsolute(url)) throw notFound(`${absent(url)}: give its path in the store.`);
  const root = await realPathOf(folder);
  const path = await realPathOf(join(folder, url));
  if (root === null || path === null || path === root) throw notFound(absent(url));
  if (!isBelow(path, root)) throw notFound(`${absent(url)}: a link leads out of the store.`);
  return { root, path };
}

/** Whether a real path is one below this folder, whose path is real too. */
export function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** Null if there is no such file. */
export async function realPathOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch {
    return null; // whatever the reason, it cannot be served from there
  }
}

function absent(url: string): string {
  return `Model not found in model store: ${url}`;
}

function notFound(message: string): ServeError {
  return new ServeError('SERVE_MODEL_NOT_FOUND', message);
}
