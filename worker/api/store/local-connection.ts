/** The open file of a local store: its table and statements. Workers in Python open the same file. */
import { accessSync, constants, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync, DatabaseSyncInstance } from '@photostructure/sqlite';
import { inodeOf, prepareFile, setAside, withGuard } from './local-file.js';
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
  static open(Database: typeof DatabaseSync, file: string): LocalConnection {
    const folder = dirname(file);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK); // SQLite would not report that it cannot create its other files there
    return withGuard(Database, file, () => {
      try {
        return LocalConnection.#open(Database, file);
      } catch (error) {
        if (!isDamage(error)) throw error;
        setAside(file, inodeOf(file), (error as Error).message);
        return LocalConnection.#open(Database, file);
      }
    });
  }

  static #open(Database: typeof DatabaseSync, file: string): LocalConnection {
    const inode = prepareFile(file);
    const db = new Database(file);
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
