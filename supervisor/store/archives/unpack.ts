/**
 * Unpacks an archive into an empty folder. The archive is not trusted: names are checked before anything is created, only
 * files and folders are created, and bytes are counted as they are written.
 */
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import {
  ARCHIVE_LIMITS,
  ArchiveProblem,
  EntryNames,
  UnpackedSum,
  UnpackingCancelled,
  type ArchiveEntry,
} from './archive-entry.js';
import { readTar } from './read-tar.js';
import { readZip } from './read-zip.js';

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
