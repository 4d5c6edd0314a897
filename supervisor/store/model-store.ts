/**
 * The folder of models that an operator has named: each model of it is a folder, or a single file. It is asked by those
 * who register models while the server runs, and by the server itself for those that it starts with.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { ServeError } from '../../protocol/errors.js';
import { FIRST_VERSION } from '../options/model-name.js';
import { APP_EXTENSIONS } from '../runtimes/index.js';
import { archiveInvalid } from './archive-invalid.js';
import { entryOfFile, entryOfFolder, isCode, type ModelFolder } from './entry-file.js';
import { readManifest } from './manifest.js';
import { placeOf } from './place.js';
import { NOTHING_LENT, RUNTIMES, type StoreQuery, type StoredModel } from './stored-model.js';

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
    return (await stat(path)).isDirectory()
      ? modelOfFolder({ folder: path, root, stem: basename(path) }, query)
      : modelOfFile(path, query);
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

/** @throws SERVE_ARCHIVE_INVALID */
async function modelOfFolder(place: ModelFolder, query: StoreQuery): Promise<StoredModel> {
  const { url } = query;
  const { folder, root } = place;
  const manifest = await readManifest(folder, root, query);
  const said = manifest === null ? query : { ...query, handler: manifest.handler, runtime: manifest.runtime };
  const { app, handler } = await entryOfFolder(place, said);
  return {
    url,
    name: query.name ?? manifest?.name ?? defaultName(basename(url)),
    version: manifest?.version ?? FIRST_VERSION,
    app,
    service: { handler, modelDir: folder },
    place: folder,
    isFolder: true,
    release: NOTHING_LENT,
  };
}

/** @throws SERVE_ARCHIVE_INVALID */
function modelOfFile(path: string, query: StoreQuery): StoredModel {
  const { url, name = defaultName(basename(url, extname(url))) } = query;
  if (!isCode(path))
    throw archiveInvalid(url, `it is no model: a file of a store is one of ${APP_EXTENSIONS.join(' ')}.`);
  const { app, handler } = entryOfFile(path, query);
  const service = { handler, modelDir: dirname(path) };
  const version = FIRST_VERSION;
  return { url, name, version, app, service, place: path, isFolder: false, release: NOTHING_LENT };
}

/** What a model is called by its place: an underscore for what is no letter, digit or underscore. */
function defaultName(stem: string): string {
  return stem.replace(/\W/g, '_').slice(0, 128);
}

/** Whether somebody may mean it as a model, even one that cannot be served: that is said then. */
function isModelLike(name: string): boolean {
  return isCode(name) || /\.(?:mar|model|zip|tar\.gz|tgz)$/.test(name);
}

async function isFolderAt(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}
