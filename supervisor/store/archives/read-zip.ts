/** Reads the entries of a zip archive. */
import type { FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { createInflateRaw } from 'node:zlib';
import { ArchiveProblem, PIECE_BYTES, type ArchiveEntry, type UnpackedSum } from './archive-entry.js';
import type { Entry, ZipFile } from 'yauzl';

/**
 * Yields the entries in the order of the archive. `file` stays open; the caller closes it.
 * Throws ArchiveProblem, and errors of the library for a truncated or damaged archive.
 */
export async function* readZip(file: FileHandle, sum: UnpackedSum): AsyncGenerator<ArchiveEntry> {
  const { fromFdPromise, getFileNameLowLevel } = await import('yauzl');
  // Names are kept unchanged; `unpack.ts` checks them.
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
