/** Checks the names of an archive's entries: inside its folder, and distinct on every file system. */
import { ArchiveProblem } from './archive-entry.js';

const MAX_CHARS = 1024;
const MAX_DEPTH = 64;
/** Limit of a file name on the file systems of Linux and macOS. */
const MAX_PART_BYTES = 255;

/** An entry's exact path, and whether it may contain others. */
interface Place {
  readonly path: string;
  readonly isFolder: boolean;
}

/** The names of one archive, in the order of its entries. */
export class EntryNames {
  /** By a key that is equal for names that differ only in case or Unicode normalization. */
  readonly #places = new Map<string, Place>();
  /** Paths of folders; those that contain them are known, too. */
  readonly #folders = new Set<string>();
  readonly #maxPlaces: number;

  /** `maxPlaces`: limit of files and folders, including folders that only occur in the names of others. */
  constructor(maxPlaces = Infinity) {
    this.#maxPlaces = maxPlaces;
  }

  /** Returns the relative path of an entry, without `.` and empty parts; empty for the folder itself. @throws ArchiveProblem */
  add(name: string, isFolder: boolean): string {
    const parts = partsOf(name);
    const path = parts.join('/');
    if (path === '' && !isFolder) throw problem(name, 'has no name');
    const parent = parts.slice(0, -1).join('/');
    if (parent !== '' && !this.#folders.has(parent)) this.#takeFolders(name, parts.slice(0, -1));
    if (path !== '') this.#take(name, path, isFolder, true);
    return path;
  }

  #takeFolders(name: string, parts: readonly string[]): void {
    let path = '';
    for (const part of parts) {
      path = path === '' ? part : `${path}/${part}`;
      this.#take(name, path, true, false);
      this.#folders.add(path);
    }
  }

  #take(name: string, path: string, isFolder: boolean, isLast: boolean): void {
    const key = path.normalize('NFC').toLowerCase();
    const before = this.#places.get(key);
    if (before === undefined) {
      if (this.#places.size >= this.#maxPlaces)
        throw new ArchiveProblem(`it has more than ${this.#maxPlaces} entries.`);
      this.#places.set(key, { path, isFolder });
      return;
    }
    if (before.path !== path)
      throw problem(name, `differs from ${JSON.stringify(before.path)} only in case or accents`);
    if (before.isFolder && isFolder) return;
    if (isFolder && !isLast) throw problem(name, `lies below ${JSON.stringify(path)}, which is a file`);
    throw problem(name, 'occurs twice');
  }
}

/** @throws ArchiveProblem */
function partsOf(name: string): string[] {
  if (name.length > MAX_CHARS)
    throw problem(name.slice(0, 40), `has a name of more than ${MAX_CHARS} characters`);
  if (name.includes('\0')) throw problem(name, 'has a NUL in its name');
  if (name.includes('\\')) throw problem(name, 'has a backslash in its name');
  // eslint-disable-next-line no-control-regex -- control characters would reach terminals and logs
  if (/[\x01-\x1f\x7f]/.test(name)) throw problem(name, 'has a control character in its name');
  if (name.startsWith('/') || /^[A-Za-z]:/.test(name)) throw problem(name, 'has an absolute path');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length > MAX_DEPTH) throw problem(name.slice(0, 40), `is more than ${MAX_DEPTH} folders deep`);
  if (parts.some((part) => Buffer.byteLength(part) > MAX_PART_BYTES))
    throw problem(name.slice(0, 40), `has more than ${MAX_PART_BYTES} bytes in a part of its name`);
  if (parts.includes('..')) throw problem(name, 'points outside the archive');
  return parts;
}

function problem(name: string, what: string): ArchiveProblem {
  return new ArchiveProblem(`its entry ${JSON.stringify(name)} ${what}.`);
}
