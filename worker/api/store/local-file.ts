/**
 * The file of a local store as a file: how it comes to be, and how a damaged one is set aside.
 *
 * Nothing here opens a file that SQLite has open in this process: closing it again would release the locks of this
 * process on it. The caller holds the guard.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  type BigIntStats,
} from 'node:fs';

const OWNER_ONLY = 0o600;
/** Files that SQLite keeps beside the one that it is given. */
const COMPANIONS = ['-shm', '-wal', '-journal'];
const MAGIC = Buffer.from('SQLite format 3\0');

/** Says which file has this name now, by its inode; null if there is none. */
export function inodeOf(file: string): bigint | null {
  return look(file)?.ino ?? null;
}

function look(file: string): BigIntStats | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false });
}

/** Makes an empty file, for its owner alone, if there is none. Returns its inode. @throws if it can be no store */
export function prepareFile(file: string): bigint {
  const found = look(file) ?? make(file);
  if (!found.isFile()) throw new Error('it is no file');
  // SQLite takes a file of one byte for an empty one, and would write over it.
  if (found.size === 1n) throw new Error('it is a file of something else');
  return found.ino;
}

function make(file: string): BigIntStats {
  // They belong to a file that was removed while others had it open: SQLite would take them for the new one's.
  for (const companion of COMPANIONS) rmSync(file + companion, { force: true });
  const fd = openSync(file, 'wx', OWNER_ONLY);
  try {
    return fstatSync(fd, { bigint: true });
  } finally {
    closeSync(fd);
  }
}

/**
 * Moves a damaged file and those beside it away, and says so; nothing is deleted. Does nothing if another worker has
 * done it, and the file of this name is a new one.
 *
 * @throws if the file was never a store
 */
export function setAside(file: string, inode: bigint | null, why: string): void {
  if (inode === null || inodeOf(file) !== inode) return;
  if (!beginsAsStore(file)) throw new Error('it is a file of something else');
  const aside = `${file}.damaged-${Date.now()}`;
  for (const part of [...COMPANIONS, '']) {
    if (existsSync(file + part)) renameSync(file + part, aside + part);
  }
  process.stderr.write(
    `The local store ${file} is damaged (${why}). It was set aside as ${aside}; the store goes on empty.\n`,
  );
}

/** Whether a file begins as SQLite's do, or is shorter than such a beginning. SQLite found it damaged, and let go of it. */
function beginsAsStore(file: string): boolean {
  const fd = openSync(file, 'r');
  try {
    const head = Buffer.alloc(MAGIC.length);
    const length = readSync(fd, head, 0, head.length, 0);
    return MAGIC.subarray(0, length).equals(head.subarray(0, length));
  } finally {
    closeSync(fd);
  }
}
