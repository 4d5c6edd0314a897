/**
 * Creates the file of a local store, and renames a damaged one, one worker of this host at a time.
 *
 * No function here opens a file that SQLite has open in this process: closing it again would release this process's
 * locks on it. The caller holds the lock of `withGuard`.
 */
import {
  chmodSync,
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
import type { DatabaseSync } from '@photostructure/sqlite';

const OWNER_ONLY = 0o600;
/** Files that SQLite keeps beside its database file. */
const COMPANIONS = ['-shm', '-wal', '-journal'];
const MAGIC = Buffer.from('SQLite format 3\0');

/** Returns the inode of the file that has this name now; null if there is none. */
export function inodeOf(file: string): bigint | null {
  return look(file)?.ino ?? null;
}

function look(file: string): BigIntStats | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false });
}

/**
 * Creates an empty file, with access for its owner only, if there is none. Returns its inode. @throws if it cannot be a
 * store
 */
export function prepareFile(file: string): bigint {
  const found = look(file) ?? make(file);
  if (!found.isFile()) throw new Error('it is not a file');
  // SQLite treats a file of one byte as empty and would overwrite it.
  if (found.size === 1n) throw new Error('it is a file of another kind');
  return found.ino;
}

function make(file: string): BigIntStats {
  // They belong to a file that was removed while other processes had it open; SQLite would use them for the new one.
  for (const companion of COMPANIONS) rmSync(file + companion, { force: true });
  const fd = openSync(file, 'wx', OWNER_ONLY);
  try {
    return fstatSync(fd, { bigint: true });
  } finally {
    closeSync(fd);
  }
}

/**
 * Renames a damaged file and those beside it, and reports it; nothing is deleted. Does nothing if another worker has
 * done so, and the file of this name is a new one.
 *
 * @throws if the file was never a store
 */
export function setAside(file: string, inode: bigint | null, why: string): void {
  if (inode === null || inodeOf(file) !== inode) return;
  if (!beginsAsStore(file)) throw new Error('it is a file of another kind');
  const aside = `${file}.damaged-${Date.now()}`;
  for (const part of [...COMPANIONS, '']) {
    if (existsSync(file + part)) renameSync(file + part, aside + part);
  }
  process.stderr.write(
    `The local store ${file} is damaged (${why}). It was renamed to ${aside}; the store starts empty.\n`,
  );
}

/**
 * Whether a file begins like those of SQLite, or is shorter than such a header. SQLite has found it damaged and closed
 * it.
 */
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

/**
 * Lets one worker of this host at a time open the file of a store, or rename it: SQLite cannot protect the names of its
 * files, and a store opened during a renaming would mix the files of two stores.
 *
 * It is a lock on an empty file beside the store, taken with SQLite, because Node has no file locks. The system frees
 * it when a process dies. @throws SQLite's error for a busy file while another worker holds the lock
 */
export function withGuard<T>(Database: typeof DatabaseSync, file: string, step: () => T): T {
  const path = `${file}-guard`;
  const isNew = !existsSync(path);
  const guard = new Database(path);
  try {
    if (isNew) chmodSync(path, 0o600);
    guard.exec('BEGIN EXCLUSIVE');
    return step();
  } finally {
    guard.close();
  }
}
