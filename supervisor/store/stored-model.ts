/** Queries to a model store, their results, the names of its entries, and the error of what cannot be served. */
import { ServeError } from '../../protocol/errors.js';
import { isModelName } from '../options/model-name.js';
import type { ServiceSource } from '../runtimes/runtime.js';

/** Query for a model of the store. */
export interface StoreQuery {
  /** Path in the store, or a web address, as given. */
  readonly url: string;
  /** Name of the model; default: the manifest's, else the file's. */
  readonly name?: string;
  /** A manifest without a name is accepted; the file's name is used. */
  readonly mayGoUnnamed?: boolean;
  /** `module`, `module:function` or `module:Class`; empty if it is found by rule. */
  readonly handler?: string;
  /** Name of the runtime; empty if it is found by the handler's file. */
  readonly runtime?: string;
  /** The request has ended: cancels the download, and the unpacking. */
  readonly signal?: AbortSignal;
}

/** A found model, ready to be planned and registered. */
export interface StoredModel {
  /** The url of the query. */
  readonly url: string;
  /** From the query, else the manifest, else the file. */
  readonly name: string;
  readonly version: string;
  /** Absolute path of the file that its workers load. */
  readonly app: string;
  /** Null if the exports of the file decide what it is. */
  readonly service: ServiceSource | null;
  /** Real path of the folder or single file to watch for changes; null for an archive. */
  readonly place: string | null;
  /** Its lower versions, which lie beside it; empty for most models. */
  readonly others: readonly StoredModel[];
  /** Releases the model's files; call it when nothing uses them any more. Further calls do nothing. */
  readonly release: () => void;
}

/** The file or folder is not a model that can be served. `url`: that of the query. `what`: the problem and its remedy. */
export function archiveInvalid(url: string, what: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_ARCHIVE_INVALID', `${url}: ${what}`, { cause });
}

export function isDiskFull(thrown: unknown): boolean {
  const { code } = thrown as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** A file of a model could not be written: an error of the machine, not of the model. */
export function notWritten(what: string, thrown: unknown): ServeError {
  const { code, message: detail } = thrown as NodeJS.ErrnoException;
  const isFull = isDiskFull(thrown);
  const reason = isFull
    ? "the server's temp folder has no space for it. Free some space, or set TMPDIR to another folder."
    : `it cannot be unpacked into the server's temp folder (${code}).`;
  const options = { detail, cause: thrown, ...(isFull ? { status: 507 } : {}) };
  return new ServeError('SERVE_INTERNAL', `${what}: ${reason}`, options);
}

/** For files that are not borrowed. */
export const NOTHING_LENT = (): void => {};

/** Runs `use`, which takes over the files; if it fails, they are released. */
export async function releasedOnFailure<T>(release: () => void, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (thrown) {
    release();
    throw thrown;
  }
}

/** The name by which a model of this entry is loaded. */
export function nameOfEntry(entry: string): string {
  return namesOf(entry)[2];
}

/** The entry whose model is loaded by this name: the one of exactly this name before others; null if there is none. */
export function namedEntry(entries: readonly string[], name: string): string | null {
  const ranked = entries.map((entry) => ({ entry, rank: namesOf(entry).indexOf(name) }));
  const [best] = ranked.filter(({ rank }) => rank >= 0).sort((a, b) => a.rank - b.rank);
  return best?.entry ?? null;
}

/** A folder may have a dot in its name: its whole name comes first. Last: how a store has it at the start without a manifest. */
function namesOf(entry: string): [whole: string, stem: string, usual: string, underscored: string] {
  const stem = stemOf(entry);
  return [entry, stem, isModelName(stem) ? stem : defaultName(stem), defaultName(stem)];
}

export function stemOf(name: string): string {
  return name.replace(/\.(?:tar\.gz|[^.]+)$/, '');
}

/** Default name of a model, with an underscore for everything except letters, digits and underscores. */
export function defaultName(stem: string): string {
  return stem.replace(/\W/g, '_').slice(0, 128);
}
