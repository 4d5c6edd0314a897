/**
 * The open file of a local store: its table and statements. Workers in Python open the same file. One worker of this host
 * at a time creates it, or renames a damaged one.
 *
 * No function here opens a file that SQLite has open in this process: closing it again would release this process's
 * locks on it.
 */
import {
  accessSync,
  constants,
  mkdirSync,
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
import { dirname } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { isDamage } from './sqlite-errors.js';

const SETUP = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_at REAL NOT NULL);
  CREATE INDEX IF NOT EXISTS by_expiry ON entries (expires_at);
`;
/** Keys are bound as bytes, because the library ends a text at its first NUL. */
const KEY = 'CAST(given(0) AS TEXT)';
const GET = `SELECT taken(value) FROM entries WHERE key = ${KEY} AND expires_at > given(1)`;
const PUT = `INSERT OR REPLACE INTO entries VALUES (${KEY}, given(1), given(2))`;
const REMOVE = `DELETE FROM entries WHERE key = ${KEY} RETURNING taken(expires_at)`;
const SWEEP = `DELETE FROM entries WHERE rowid IN
  (SELECT rowid FROM entries WHERE expires_at <= given(0) LIMIT given(1))`;

/**
 * Values are bound to a statement and read from it through two SQL functions, `given` and `taken`. Prepared statements
 * of the library would keep the file open until they are garbage-collected, long after `close`.
 */
export class LocalConnection {
  /** Inode of the file that was opened, which may have been renamed since. */
  readonly inode: bigint;
  readonly #db: DatabaseSyncInstance;
  #given: readonly (Uint8Array | number)[] = [];
  #taken: unknown = null;

  private constructor(db: DatabaseSyncInstance, inode: bigint) {
    this.#db = db;
    this.inode = inode;
    db.function('given', (index: number) => this.#given[index]);
    db.function('taken', (value: unknown) => {
      this.#taken = value;
      return null;
    });
    db.exec(SETUP);
  }

  /** Opens the file, or creates it, with access for its owner only. A damaged file is renamed first. */
  static open(file: string): LocalConnection {
    const folder = dirname(file);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK); // SQLite would not report that it cannot create its other files there
    return withGuard(file, () => {
      try {
        return LocalConnection.#open(file);
      } catch (error) {
        if (!isDamage(error)) throw error;
        setAside(file, inodeOf(file), (error as Error).message);
        return LocalConnection.#open(file);
      }
    });
  }

  static #open(file: string): LocalConnection {
    const inode = prepareFile(file);
    const db = new DatabaseSync(file);
    try {
      return new LocalConnection(db, inode);
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** Returns a copy of the bytes; null if the key is missing or expired. */
  get(key: string): Buffer | null {
    const found = this.#execute(GET, Buffer.from(key), nowSeconds()) as Uint8Array | null;
    return found && Buffer.from(found.buffer, found.byteOffset, found.byteLength);
  }

  /** `expiresAt` in seconds since the epoch; Infinity for never. */
  put(key: string, bytes: Buffer, expiresAt: number): void {
    this.#execute(PUT, Buffer.from(key), bytes, expiresAt);
  }

  /** Returns true if there was an unexpired value. */
  remove(key: string): boolean {
    const expiresAt = this.#execute(REMOVE, Buffer.from(key)) as number | null;
    return expiresAt !== null && expiresAt > nowSeconds();
  }

  /** Removes up to `limit` expired entries. */
  sweep(limit: number): void {
    this.#execute(SWEEP, nowSeconds(), limit);
  }

  /** Commits everything that the step does, or nothing. The commit is on disk when this returns. */
  transaction<T>(step: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const result = step();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      // A full disk has already ended the transaction.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  /** Returns the value that the statement reads from its row; null if there is no row. */
  #execute(sql: string, ...given: readonly (Uint8Array | number)[]): unknown {
    this.#given = given;
    this.#taken = null;
    this.#db.exec(sql);
    const taken = this.#taken;
    [this.#given, this.#taken] = [[], null]; // a large value is not kept until the next call
    return taken;
  }
}

function nowSeconds(): number {
  return Date.now() / 1000;
}

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
function prepareFile(file: string): bigint {
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
export function withGuard<T>(file: string, step: () => T): T {
  const path = `${file}-guard`;
  const isNew = !existsSync(path);
  const guard = new DatabaseSync(path);
  try {
    if (isNew) chmodSync(path, 0o600);
    guard.exec('BEGIN EXCLUSIVE');
    return step();
  } finally {
    guard.close();
  }
}
