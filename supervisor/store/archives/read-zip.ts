/** The entries of a zip archive. */
import type { FileHandle } from 'node:fs/promises';
import { ArchiveProblem } from './archive-problem.js';
import type { ArchiveEntry } from './archive-entry.js';
import type { Entry, ZipFile } from 'yauzl';

export async function* readZip(file: FileHandle): AsyncGenerator<ArchiveEntry> {
  const { fromFdPromise, getFileNameLowLevel } = await import('yauzl');
  // Names are checked by whoever unpacks them, so they are taken as they stand.
  const zip = await fromFdPromise(file.fd, { decodeStrings: false, lazyEntries: true, autoClose: false });
  for await (const entry of zip.eachEntry()) {
    const { generalPurposeBitFlag, extraFields, fileNameRaw } = entry;
    const name = getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true);
    yield { name, ...factsOf(entry, name), content: () => contentOf(zip, entry, name) };
  }
}

/** The kinds of entries that Unix knows, in the upper half of their attributes: `S_IFMT` and its values. */
const KIND_BITS = 0o170000;
const KINDS: Readonly<Record<number, string>> = {
  0: 'file', // made where there are no kinds
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
  if (entry.canDecodeFileData()) return await zip.openReadStreamPromise(entry);
  const method = `its entry ${JSON.stringify(name)} is compressed by method ${entry.compressionMethod}`;
  throw new ArchiveProblem(`${method}; only stored and deflated entries are known.`);
}
