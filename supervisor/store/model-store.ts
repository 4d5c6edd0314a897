/**
 * The folder of models that an operator has named: each model of it is a folder, or a single file. It is asked by those
 * who register models while the server runs, and by the server itself for those that it starts with.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { ServeError } from '../../protocol/errors.js';
import { FIRST_VERSION } from '../options/model-name.js';
import { entryOfFile, entryOfFolder, isAppFile } from './entry-file.js';
import { placeOf } from './place.js';
import { NOTHING_LENT, type StoreQuery, type StoredModel } from './stored-model.js';

const RUNTIMES: readonly string[] = ['', 'node', 'python', 'python2', 'python3'];

/** What is visible in a store and is no model of anybody's. */
const NO_MODELS: ReadonlySet<string> = new Set(['node_modules']);

export class ModelStore {
  readonly #folder: string | null;

  /** Absolute path; null: there is no store, and nothing is found. */
  constructor(folder: string | null) {
    this.#folder = folder;
  }

  /** Whether there is a folder to look in. */
  get exists(): boolean {
    return this.#folder !== null;
  }

  /**
   * Finds a model by its place. Only what lies in the store is found, wherever links lead. Who asks gives it back: see
   * `StoredModel.release`.
   * Rejects with SERVE_BAD_REQUEST (the runtime), SERVE_MODEL_NOT_FOUND, SERVE_DOWNLOAD_FAILED, SERVE_ARCHIVE_INVALID.
   */
  async find(query: StoreQuery): Promise<StoredModel> {
    const { url, runtime = '' } = query;
    if (!RUNTIMES.includes(runtime))
      throw new ServeError('SERVE_BAD_REQUEST', `Invalid RuntimeType value: ${runtime}`);
    const { root, path } = await placeOf(url, this.#folder);
    const isFolder = (await stat(path)).isDirectory();
    const { app, handler } = isFolder ? await entryOfFolder(path, root, query) : entryOfFile(path, query);
    const modelDir = isFolder ? path : dirname(path);
    return {
      url,
      name: defaultName(url, isFolder),
      version: FIRST_VERSION,
      app,
      service: { handler, modelDir },
      folder: isFolder ? path : null,
      release: NOTHING_LENT,
    };
  }

  /** The places of all that is visible in the store and may be a model, in order. */
  async urls(): Promise<string[]> {
    if (this.#folder === null) return [];
    const entries = (await readdir(this.#folder)).filter(
      (name) => !name.startsWith('.') && !NO_MODELS.has(name),
    );
    const folder = this.#folder;
    const kept = await Promise.all(
      entries.map(async (name) => isModelLike(name) || (await isFolderAt(join(folder, name)))),
    );
    return entries.filter((_, i) => kept[i]).sort();
  }
}

/** The name of a file without its extension, or of a folder, with an underscore for what is no letter, digit or underscore. */
function defaultName(url: string, isFolder: boolean): string {
  const name = basename(url);
  const stem = isFolder ? name : name.slice(0, -extname(name).length);
  return stem.replace(/\W/g, '_').slice(0, 128);
}

/** Whether somebody may mean it as a model, even one that cannot be served: that is said then. */
function isModelLike(name: string): boolean {
  return isAppFile(name) || /\.(?:py|mar|model|zip|tar\.gz|tgz)$/.test(name);
}

async function isFolderAt(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}
