/**
 * Entries of an archive as it declares them, unchecked, why it cannot be unpacked, its bounds, and the check of the names:
 * inside its folder, and distinct on every file system. Each format has a reader of its own.
 */

/** An archive cannot be unpacked. The message is a sentence that follows the archive's name. */
export class ArchiveProblem extends Error {}

/** Unpacking was cancelled. */
export class UnpackingCancelled extends Error {}

/** Bytes that are decompressed and written at once: few enough for memory, enough that thread switches do not matter. */
export const PIECE_BYTES = 256 * 1024;

export interface ArchiveEntry {
  readonly name: string;
  /** `file`, `folder`, or a noun for another kind, such as `a symbolic link`. */
  readonly kind: 'file' | 'folder' | (string & {});
  readonly isExecutable: boolean;
  /** Declared checksum of a file's content; null if the archive has none. */
  readonly crc32: number | null;
  /** The content of a file. Read it to its end before taking the next entry. */
  content(): Promise<AsyncIterable<Uint8Array>>;
}

/**
 * Limits of an unpacked archive. They apply to every archive, and no option changes them. Archives of models contain
 * weights, which hardly compress, and code, which compresses to a fifth. deflate reaches a ratio of 1032 with equal bytes;
 * such a file is harmless while it is small.
 */
export const ARCHIVE_LIMITS = {
  /** Files and folders. */
  maxEntries: 50_000,
  /** Limit of all written files together. */
  maxBytes: 64 * 1024 ** 3,
  /** Limit of written bytes divided by the size of the archive. */
  maxRatio: 100,
  /** `maxRatio` applies when more than this is written. */
  ratioCountsFromBytes: 256 * 1024 ** 2,
};

/** Counts the entries and bytes of one archive against the limits, before more of it is read or written. */
export class UnpackedSum {
  entries = 0;
  #written = 0;
  #unzipped = 0;
  readonly #archiveBytes: number;
  readonly #limits: typeof ARCHIVE_LIMITS;
  readonly #signal: AbortSignal;

  constructor(archiveBytes: number, limits: typeof ARCHIVE_LIMITS, signal: AbortSignal) {
    this.#archiveBytes = archiveBytes;
    this.#limits = limits;
    this.#signal = signal;
  }

  /** @throws ArchiveProblem, and the signal's reason */
  countEntry(): void {
    this.#signal.throwIfAborted();
    this.entries += 1;
    this.boundEntries(this.entries);
  }

  /** Checks the number of entries that the archive declares, if its format does. @throws ArchiveProblem */
  boundEntries(entries: number): void {
    const { maxEntries } = this.#limits;
    if (entries > maxEntries) throw new ArchiveProblem(`it has more than ${maxEntries} entries.`);
  }

  /** Call it before the bytes are written. @throws ArchiveProblem, and the signal's reason */
  countBytes(bytes: number): void {
    this.#written += bytes;
    this.#bound(this.#written);
  }

  /** Adds decompressed bytes before they are parsed, also those of no entry: headers, and padding. As `countBytes` */
  countUnzipped(bytes: number): void {
    this.#unzipped += bytes;
    this.#bound(this.#unzipped);
  }

  #bound(bytes: number): void {
    this.#signal.throwIfAborted();
    const { maxBytes, maxRatio, ratioCountsFromBytes } = this.#limits;
    if (bytes > maxBytes) throw new ArchiveProblem(`it unpacks to more than ${maxBytes} bytes.`);
    if (bytes > ratioCountsFromBytes && bytes > maxRatio * this.#archiveBytes)
      throw new ArchiveProblem(`it may be a zip bomb: it unpacks to more than ${maxRatio} times its size.`);
  }
}

const MAX_CHARS = 1024;
const MAX_DEPTH = 64;
/** Limit of a file name on the file systems of Linux and macOS. */
const MAX_PART_BYTES = 255;

/** The names of one archive, in the order of its entries. */
export class EntryNames {
  /** Exact paths, by a key that is equal for names that differ only in case or Unicode normalization. */
  readonly #places = new Map<string, { readonly path: string; readonly isFolder: boolean }>();
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
