/**
 * Finds models: in the folder of the model store, where each is a folder, an archive, or a single file, and at allowed web
 * addresses. Used by registrations, and by the server for the models that it starts with.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { ServeError, shuttingDown } from '../../protocol/errors.js';
import { FIRST_VERSION } from '../options/model-name.js';
import { withoutSecrets } from '../options/allowed-urls.js';
import type { ServerOptions } from '../options/resolve.js';
import { RUNTIME_NAMES } from '../runtimes/index.js';
import { ArchiveCache } from './archives/archive-cache.js';
import { ArchiveProblem, UnpackingCancelled } from './archives/archive-entry.js';
import { OwnFolder } from './archives/own-folder.js';
import { DownloadGate, checkedUrl, download, isWebAddress } from './download.js';
import {
  entryOfFile,
  entryOfFolder,
  isEntry,
  isModelFile,
  isHandlerIn,
  versionFiles,
  type ModelFolder,
} from './entry-file.js';
import { MANIFEST_FILE, readManifest } from './manifest.js';
import { locate } from './place.js';
import {
  NOTHING_LENT,
  archiveInvalid,
  defaultName,
  notWritten,
  releasedOnFailure,
  stemOf,
  type StoreQuery,
  type StoredModel,
} from './stored-model.js';

/** SageMaker knows no versions: a second model of a name is a conflict, and unregistering one leaves nothing behind. */
const ONLY_VERSION = { version: FIRST_VERSION, others: [] };

/** Folders of a store that are never models. */
const NO_MODELS: ReadonlySet<string> = new Set(['node_modules']);

export class ModelStore {
  readonly #folder: string | null;
  readonly #options: Pick<ServerOptions, 'allowedUrls' | 'defaultHandler'>;
  readonly #hasWholeUrls: boolean;
  readonly #publicHosts = new Set<string>();
  readonly #gate = new DownloadGate();
  readonly #own = new OwnFolder((problem) => this.#report(problem));
  readonly #stop = new AbortController();
  readonly #archives = new ArchiveCache(this.#own, this.#stop.signal);
  #report: (problem: string) => void = () => {};

  /**
   * `folder`: absolute path; null without a store. The default handler is that of models without a manifest. `hasWholeUrls`:
   * see `locate`.
   */
  constructor(
    folder: string | null,
    options: Pick<ServerOptions, 'allowedUrls' | 'defaultHandler'>,
    hasWholeUrls = false,
  ) {
    this.#folder = folder;
    this.#hasWholeUrls = hasWholeUrls;
    this.#options = options;
  }

  /** Whether the store has a folder. */
  get exists(): boolean {
    return this.#folder !== null;
  }

  /**
   * Finds a model by its url. Links that point outside the store are refused. The caller must release the model: see
   * `StoredModel.release`.
   * Rejects with SERVE_BAD_REQUEST (unknown runtime), SERVE_MODEL_NOT_FOUND, SERVE_DOWNLOAD_FAILED, SERVE_OVERLOADED,
   * SERVE_ARCHIVE_INVALID, SERVE_CANCELLED (the request ended during the unpacking), SERVE_SHUTTING_DOWN, and
   * SERVE_INTERNAL if the temp folder cannot be written.
   */
  async find(query: StoreQuery): Promise<StoredModel> {
    const { url, runtime = '' } = query;
    if (runtime !== '' && !RUNTIME_NAMES.includes(runtime))
      throw new ServeError('SERVE_BAD_REQUEST', `Invalid RuntimeType value: ${runtime}`);
    if (isWebAddress(url)) return this.#download(query);
    const { root, path } = await locate(url, this.#folder, this.#hasWholeUrls);
    if ((await stat(path)).isDirectory()) {
      const model = await this.#modelOfFolder({ folder: path, root, stem: basename(url) }, query);
      return this.#hasWholeUrls ? { ...model, ...ONLY_VERSION } : model;
    }
    return isModelFile(path)
      ? modelOfFile(path, this.#withDefaultHandler(path, query))
      : this.#unpack(path, basename(url), query);
  }

  /** `report` gets a sentence about each problem from now on that fails no search. */
  reportTo(report: (problem: string) => void): void {
    this.#report = report;
  }

  /** Removes what killed servers left in the temp folder. Never rejects. */
  removeLeftovers(): Promise<void> {
    return this.#own.removeLeftovers();
  }

  /** Cancels running searches and removes all unpacked files; call it when no worker uses them. */
  close(): void {
    this.#stop.abort(new UnpackingCancelled('the server ends'));
    this.#own.close();
  }

  async #download(query: StoreQuery): Promise<StoredModel> {
    const { url } = query;
    const { allowedUrls: allowed } = this.#options;
    checkedUrl(url, allowed); // before a folder is created
    const signals = [this.#stop.signal, ...(query.signal === undefined ? [] : [query.signal])];
    const folder = openOwn(this.#own);
    const file = await download(url, {
      allowed,
      folder,
      signals,
      publicHosts: this.#publicHosts,
      gate: this.#gate,
    });
    try {
      const known = { ...query, url: withoutSecrets(url) };
      return await this.#unpack(file.path, basename(new URL(url).pathname), known, file.sha256);
    } finally {
      await rm(file.path, { force: true });
    }
  }

  /** `name`: original name of the file. `sha256`: its checksum, if known and only this server writes the file. */
  async #unpack(path: string, name: string, query: StoreQuery, sha256?: string): Promise<StoredModel> {
    const { folder, release } = await this.#archives
      .lend(path, query.signal, sha256)
      .catch((thrown: unknown) => {
        if (!(thrown instanceof UnpackingCancelled)) throw notUnpacked(query.url, thrown);
        throw this.#stop.signal.aborted ? shuttingDown() : new ServeError('SERVE_CANCELLED');
      });
    return releasedOnFailure(release, async () => {
      const place = { folder: await contentOf(folder), root: folder, stem: stemOf(name) };
      // An archive is one version of a model.
      return { ...(await this.#modelOfFolder(place, query)), others: [], place: null, release };
    });
  }

  /** The default handler is that of a single file if it names this file. */
  #withDefaultHandler(path: string, query: StoreQuery): StoreQuery {
    const handler = query.handler ?? this.#options.defaultHandler;
    const isMeant = handler !== null && isHandlerIn(path, handler);
    return query.handler === undefined && isMeant ? { ...query, handler } : query;
  }

  /** @throws SERVE_ARCHIVE_INVALID */
  async #modelOfFolder(place: ModelFolder, query: StoreQuery): Promise<StoredModel> {
    const { folder, root, stem } = place;
    const manifest = await readManifest(folder, root, query);
    const ownHandler = query.handler ?? this.#options.defaultHandler ?? '';
    const entryQuery =
      manifest === null
        ? { ...query, handler: ownHandler }
        : { ...query, handler: manifest.handler, runtime: manifest.runtime };
    const { app, handler } = await entryOfFolder(place, entryQuery);
    const name = query.name ?? (manifest?.name || defaultName(stem));
    const found = (file: Pick<StoredModel, 'version' | 'app'>): StoredModel =>
      modelAt({ url: query.url, name, ...file }, handler, folder, folder);
    const [newest, ...older] = app === folder ? await versionFiles(place, query.url) : [];
    if (newest !== undefined) return { ...found(newest), others: older.map(found) };
    return found({ version: manifest?.version ?? FIRST_VERSION, app });
  }

  /** Sorted urls of everything in the store that may be a model; hidden files are skipped. */
  async urls(): Promise<string[]> {
    if (this.#folder === null) return [];
    const entries = (await readdir(this.#folder)).filter(
      (name) => !name.startsWith('.') && !NO_MODELS.has(name),
    );
    const folder = this.#folder;
    const kept = await Promise.all(
      entries.map(async (name) => isModelLike(name) || (await isFolderAt(join(folder, name)))),
    );
    return entries.filter((name, i) => kept[i] === true && !isDataOf(entries, name)).sort();
  }
}

/** Whether no code serves the model: its file is all that belongs to it. */
function isWithoutCode(app: string): boolean {
  return isModelFile(app) && !isEntry(app);
}

/** `place`: the model's folder, or its only file; `modelDir`: the folder that its code finds. */
function modelAt(
  file: Pick<StoredModel, 'url' | 'name' | 'version' | 'app'>,
  handler: string,
  place: string,
  modelDir: string,
): StoredModel {
  const more = isWithoutCode(file.app)
    ? { service: null, place: file.app }
    : { service: { handler, modelDir }, place };
  return { ...file, ...more, others: [], release: NOTHING_LENT };
}

function modelOfFile(path: string, query: StoreQuery): StoredModel {
  const { url, name = defaultName(basename(url, extname(url))) } = query;
  const { app, handler } = entryOfFile(path, query);
  return modelAt({ url, name, version: FIRST_VERSION, app }, handler, path, dirname(path));
}

/** An archive may contain a single folder, which is the model: `.tar.gz` of the archiver, and zips of a folder, have that form. */
async function contentOf(folder: string): Promise<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  const [only, ...others] = entries.filter(({ name }) => !name.startsWith('.') && name !== MAC_FOLDER);
  const isWhole = only?.isDirectory() === true && only.name !== METADATA_FOLDER && others.length === 0;
  return isWhole ? join(folder, only.name) : folder;
}

/** Macs add this folder to a zip. */
const MAC_FOLDER = '__MACOSX';
const METADATA_FOLDER = dirname(MANIFEST_FILE);

/** @throws SERVE_INTERNAL */
function openOwn(own: OwnFolder): string {
  try {
    return own.open();
  } catch (thrown) {
    throw notWritten('a folder for it', thrown);
  }
}

function notUnpacked(url: string, thrown: unknown): unknown {
  if (thrown instanceof ArchiveProblem) return archiveInvalid(url, thrown.message, thrown);
  return (thrown as NodeJS.ErrnoException).code === undefined ? thrown : notWritten(url, thrown);
}

/** Whether a file may be meant as a model, even one that cannot be served, which is then reported. */
function isModelLike(name: string): boolean {
  return isModelFile(name) || /\.(?:mar|model|zip|tar\.gz|tgz)$/.test(name);
}

/** Whether the file has the name of a handler beside it: the handler serves the model, and reads it. */
function isDataOf(names: readonly string[], name: string): boolean {
  return isWithoutCode(name) && names.some((other) => isEntry(other) && stemOf(other) === stemOf(name));
}

async function isFolderAt(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}
