/** Entries of an archive as it declares them, unchecked, and why it cannot be unpacked. Each format has a reader. */
import type { FileHandle } from 'node:fs/promises';

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

/** Bounds of an archive, checked before more of it is read. Both throw ArchiveProblem if there is too much. */
export interface ReadBounds {
  /** Adds decompressed bytes before they are parsed, also those of no entry: headers, and padding. */
  countUnzipped(bytes: number): void;
  /** Checks the number of entries that the archive declares, if its format does. */
  boundEntries(entries: number): void;
}

/**
 * Yields the entries in the order of the archive. `file` stays open; the caller closes it.
 * Throws ArchiveProblem, and errors of the libraries for a truncated or damaged archive.
 */
export type ArchiveReader = (file: FileHandle, bounds: ReadBounds) => AsyncIterable<ArchiveEntry>;
