/** Entries of an archive as it declares them, unchecked. Each format has a reader. */
import type { FileHandle } from 'node:fs/promises';

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
 * Yields the entries in the order of the archive. `file` stays open; the caller closes it. `onUnzipped` gets the number of
 * decompressed bytes before they are parsed, whether they belong to an entry or not, and throws if there are too many.
 * Throws ArchiveProblem, and errors of the libraries for a truncated or damaged archive.
 */
export type ArchiveReader = (
  file: FileHandle,
  onUnzipped: (bytes: number) => void,
) => AsyncIterable<ArchiveEntry>;
