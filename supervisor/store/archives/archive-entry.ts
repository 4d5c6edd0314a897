/** What an archive holds, as it says itself: nothing of it is checked. Each format has a reader. */
import type { FileHandle } from 'node:fs/promises';

/** What is decompressed and written at once: small enough to be held, and so large that turns of threads do not count. */
export const PIECE_BYTES = 256 * 1024;

export interface ArchiveEntry {
  readonly name: string;
  /** `file`, `folder`, or a noun for what is neither, such as `a symbolic link`. */
  readonly kind: 'file' | 'folder' | (string & {});
  readonly isExecutable: boolean;
  /** Of a file's content, if the archive says; null if not. */
  readonly crc32: number | null;
  /** The content of a file. Read to its end before the next entry is asked for. */
  content(): Promise<AsyncIterable<Uint8Array>>;
}

/**
 * The entries in the order of the archive. `file` stays open, and is its owner's to close. `onUnzipped` is told of every
 * byte of a compressed archive before it is looked at, whether it is part of an entry or not, and throws if it is one too
 * many. Throws ArchiveProblem, and whatever the libraries throw for an archive that is cut off or damaged.
 */
export type ArchiveReader = (
  file: FileHandle,
  onUnzipped: (bytes: number) => void,
) => AsyncIterable<ArchiveEntry>;
