/**
 * Unpacks an archive into an empty folder. The archive is not trusted: names are checked before anything is created, only
 * files and folders are created, and bytes are counted as they are written.
 */
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { crc32, createInflateRaw } from 'node:zlib';
import {
  ARCHIVE_LIMITS,
  ArchiveProblem,
  EntryNames,
  UnpackedSum,
  UnpackingCancelled,
  type ArchiveEntry,
  PIECE_BYTES,
} from './archive-entry.js';
import { readTar } from './read-tar.js';
import type { Readable } from 'node:stream';
import type { Entry, ZipFile } from 'yauzl';

/**
 * `file`: open for reading; stays open. `folder`: absolute path of an empty folder; the caller removes its contents after a
 * failure. `signal`: its reason is an UnpackingCancelled.
 * Rejects with ArchiveProblem, the system's error if something cannot be written, or the signal's reason.
 */
export async function unpack(
  file: FileHandle,
  folder: string,
  signal: AbortSignal,
  limits = ARCHIVE_LIMITS,
): Promise<void> {
  const read = await readerOf(file);
  const { size } = await file.stat();
  const sum = new UnpackedSum(size, limits, signal);
  const names = new EntryNames(limits.maxEntries);
  const folders = new Set([folder]);
  for await (const entry of asProblems(read(file, sum))) {
    const { name, kind } = entry;
    sum.countEntry();
    // The archive decides how much work there is between two reads of the file.
    if (sum.entries % ENTRIES_PER_TURN === 0) await setImmediate();
    if (kind !== 'file' && kind !== 'folder')
      throw new ArchiveProblem(
        `its entry ${JSON.stringify(name)} is ${kind}; only files and folders are unpacked.`,
      );
    const path = join(folder, names.add(name, kind === 'folder'));
    const needed = kind === 'folder' ? path : dirname(path);
    if (!folders.has(needed)) await mkdir(needed, { recursive: true, mode: 0o700 });
    folders.add(needed);
    if (kind === 'file') await writeEntry(path, entry, sum);
  }
  if (sum.entries === 0) throw new ArchiveProblem('it is empty.');
}

/** Entries that are looked at in one turn of the event loop, in about a millisecond. */
const ENTRIES_PER_TURN = 64;

/** Chooses the reader by the first bytes, not by the name. @throws ArchiveProblem */
async function readerOf(file: FileHandle): Promise<typeof readZip> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
  const start = buffer.toString('latin1', 0, bytesRead);
  if (start === 'PK\x03\x04' || start === 'PK\x05\x06') return readZip;
  if (start.startsWith('\x1f\x8b')) return readTar;
  throw new ArchiveProblem('it is neither a zip archive nor a gzip-compressed tar archive.');
}

/** Turns errors of the libraries into ArchiveProblem. */
async function* asProblems<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* source;
  } catch (thrown) {
    rethrowAsProblem(thrown);
  }
}

function rethrowAsProblem(thrown: unknown): never {
  if (thrown instanceof ArchiveProblem || thrown instanceof UnpackingCancelled) throw thrown;
  throw new ArchiveProblem(`it is cut off or damaged: ${(thrown as Error).message}.`, { cause: thrown });
}

async function writeEntry(path: string, entry: ArchiveEntry, sum: UnpackedSum): Promise<void> {
  // `wx` creates a new file and follows no link.
  const target = await open(path, 'wx', entry.isExecutable ? 0o700 : 0o600);
  try {
    const content = await entry.content().catch(rethrowAsProblem);
    let found = 0;
    for await (const chunk of asProblems(content)) {
      sum.countBytes(chunk.length);
      found = crc32(chunk, found);
      for (let at = 0; at < chunk.length;) at += (await target.write(chunk, at)).bytesWritten;
    }
    if (entry.crc32 !== null && entry.crc32 !== found)
      throw new ArchiveProblem(
        `it is damaged: the checksum of its entry ${JSON.stringify(entry.name)} is wrong.`,
      );
  } finally {
    await target.close();
  }
}

/**
 * Yields the entries of a zip archive in their order. `file` stays open; the caller closes it.
 * Throws ArchiveProblem, and errors of the library for a truncated or damaged archive.
 */
async function* readZip(file: FileHandle, sum: UnpackedSum): AsyncGenerator<ArchiveEntry> {
  const { fromFdPromise, getFileNameLowLevel } = await import('yauzl');
  // Names are kept unchanged; `unpack` checks them.
  const zip = await fromFdPromise(file.fd, { decodeStrings: false, lazyEntries: true, autoClose: false });
  sum.boundEntries(zip.entryCount);
  for await (const entry of zip.eachEntry()) {
    const { generalPurposeBitFlag, extraFields, fileNameRaw } = entry;
    const name = getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true);
    yield { name, ...factsOf(entry, name), content: () => contentOf(zip, entry, name) };
  }
}

/** Unix file types in the upper half of the attributes: `S_IFMT` and its values. */
const KIND_BITS = 0o170000;
const KINDS: Readonly<Record<number, string>> = {
  0: 'file', // created on a system without types
  0o100000: 'file',
  0o040000: 'folder',
  0o120000: 'a symbolic link',
};

function factsOf(entry: Entry, name: string): Pick<ArchiveEntry, 'kind' | 'isExecutable' | 'crc32'> {
  const mode = entry.externalFileAttributes >>> 16;
  const kind = KINDS[mode & KIND_BITS] ?? 'a device, a pipe or a socket';
  const isFolder = kind === 'folder' || (kind === 'file' && name.endsWith('/'));
  return { kind: isFolder ? 'folder' : kind, isExecutable: (mode & 0o111) !== 0, crc32: entry.crc32 };
}

async function contentOf(zip: ZipFile, entry: Entry, name: string): Promise<AsyncIterable<Uint8Array>> {
  if (entry.isEncrypted()) throw new ArchiveProblem(`its entry ${JSON.stringify(name)} is encrypted.`);
  const { compressionMethod: method } = entry;
  if (method !== STORED && method !== DEFLATED) {
    const found = `its entry ${JSON.stringify(name)} is compressed by method ${method}`;
    throw new ArchiveProblem(`${found}; only stored and deflated entries are known.`);
  }
  const source = await zip.openReadStreamPromise(entry, { decodeFileData: false });
  return method === STORED ? source : inflated(source, entry, name);
}

const STORED = 0;
const DEFLATED = 8;

/**
 * Inflates here and not in the library, which takes 16 KiB at a time: each piece needs Node's thread pool twice, to inflate
 * and to write it, and 50 MB took twice as long.
 */
async function* inflated(
  source: Readable,
  { uncompressedSize }: Entry,
  name: string,
): AsyncGenerator<Buffer> {
  const inflate = createInflateRaw({ chunkSize: PIECE_BYTES });
  source.on('error', (error) => inflate.destroy(error));
  source.pipe(inflate);
  let bytes = 0;
  try {
    for await (const piece of inflate as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > uncompressedSize)
        throw new Error(`its entry ${JSON.stringify(name)} is larger than it says`);
      yield piece;
    }
    if (bytes < uncompressedSize)
      throw new Error(`its entry ${JSON.stringify(name)} is smaller than it says`);
  } finally {
    inflate.destroy();
    source.destroy();
  }
}
