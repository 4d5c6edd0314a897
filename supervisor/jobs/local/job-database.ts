/** The file of a local store of jobs: its folder, its lock, its tables. */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DatabaseSync, DatabaseSyncInstance } from '@photostructure/sqlite';
import { bodiesFolder } from './body-files.js';
import { damageOfLog, type LogDamage } from './log-damage.js';
import { isDamage, isFull, isTaken, reasonOf } from './sqlite-errors.js';

export type Database = DatabaseSyncInstance;
export type DatabaseClass = typeof DatabaseSync;

/** A text for the operator, with the cure. Passes from a thread to another with all its properties, but as a plain Error. */
export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
  /** Whether it can be opened once its disk has room. */
  isFull = false;
}

export const PACKAGE = '@photostructure/sqlite';

export function databaseFile(folder: string): string {
  return join(folder, 'jobs.sqlite3');
}

/** A server that was just killed has the lock until it is gone. */
const LOCK_WAIT_MS = 2000;

/** The version of the tables below; a store of another one is refused. */
export const VERSION = 1;

const NEW_VERSION = 0;

/**
 * A check of the whole file reads all of it, which takes minutes for many GB. The start reads the schema and every job in any
 * case, so that damage there stops it; damage in the bodies of a larger file is named when one of them is read.
 */
export const MAX_CHECKED_BYTES = 256 * 1024 ** 2;

/**
 * The lock lasts as long as the connection, and the system frees it when the process dies. Every commit is on the disk when
 * it returns.
 */
const SETUP = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA cache_size = -8000;
  BEGIN IMMEDIATE;
  COMMIT;
`;

/**
 * `jobs` has a row for each job, in order of acceptance. Its record is JSON; the other columns are those that are searched.
 * `place`: that at which a due job waits; `at`: when a queued job is due or expires; `token`: names the last attempt;
 * `end_order`: numbers the ends; `owes`: its webhook is owed, 1 if this process sends it, 0 if none does. Bodies have tables of
 * their own, since a change of a row writes all of it.
 *
 * In `by_state` what succeeded last, what runs and what waits first are neighbours: the end of one job and the begin of the
 * next write one page of it. In the other order of the states they are three pages.
 */
const TABLES = `
  BEGIN IMMEDIATE;
  CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL,
    priority INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    token TEXT,
    place TEXT,
    at REAL,
    end_order INTEGER,
    owes INTEGER,
    key_scope TEXT,
    key_content TEXT
  );
  CREATE UNIQUE INDEX by_id ON jobs (id);
  CREATE UNIQUE INDEX by_key ON jobs (key_scope) WHERE key_scope IS NOT NULL;
  CREATE INDEX by_state ON jobs (state DESC, seq);
  CREATE INDEX by_place ON jobs (place, priority DESC, seq, at) WHERE place IS NOT NULL;
  CREATE INDEX by_time ON jobs (at) WHERE at IS NOT NULL;
  CREATE UNIQUE INDEX by_end ON jobs (end_order) WHERE end_order IS NOT NULL AND owes IS NULL;
  CREATE INDEX by_owes ON jobs (owes, seq) WHERE owes IS NOT NULL;
  CREATE TABLE calls (seq INTEGER PRIMARY KEY, call TEXT NOT NULL, body BLOB, file TEXT);
  CREATE TABLE results (seq INTEGER PRIMARY KEY, body BLOB, file TEXT);
  CREATE TABLE webhooks (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, webhook TEXT NOT NULL, body BLOB NOT NULL, owes INTEGER NOT NULL);
  CREATE UNIQUE INDEX webhooks_by_id ON webhooks (id);
  CREATE INDEX webhooks_by_owes ON webhooks (owes, seq);
  PRAGMA user_version = ${VERSION};
  COMMIT;
`;

/** Opens the store in this folder, or makes it, for its owner only. @throws CannotOpen */
export function openDatabase(Database: DatabaseClass, folder: string): Database {
  const file = databaseFile(folder);
  let database: Database | null = null;
  try {
    checkLog(Database, file);
    makeFile(folder, file);
    database = new Database(file, { timeout: LOCK_WAIT_MS });
    database.exec(SETUP);
    check(database, file);
    return database;
  } catch (error) {
    database?.close();
    throw explained(error, folder);
  }
}

/** @throws CannotOpen if the log of commits is damaged; SQLite's error if another server uses it */
function checkLog(Database: DatabaseClass, file: string): void {
  const damage = damageOfLog(file);
  if (damage === null) return;
  if (statSync(file, { throwIfNoEntry: false })?.size) touch(Database, file);
  throw new CannotOpen(damagedLog(file, damage));
}

/** Looks whether another server uses the file, which may have been writing its log. Changes nothing. */
function touch(Database: DatabaseClass, file: string): void {
  const database = new Database(file, { readOnly: true, timeout: LOCK_WAIT_MS });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; SELECT 1 FROM sqlite_schema');
  } catch (error) {
    if (isTaken(error)) throw error;
  } finally {
    database.close();
  }
}

/** Makes the folders and the file where they are not there; their names are on the disk when this returns. */
function makeFile(folder: string, file: string): void {
  const first = makeFolder(bodiesFolder(folder)) ?? file;
  makeEmpty(file);
  for (let one = folder; ; one = dirname(one)) {
    syncFolder(one);
    if (one === dirname(first) || one === dirname(one)) return;
  }
}

/**
 * Makes a folder and those above it. Returns the first that it has made; null if it was there. Node's own recursive mkdir never
 * returns where the system has no such place although the folder above is there, as below /proc.
 */
function makeFolder(folder: string): string | null {
  try {
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(folder).isDirectory()) return null;
    if (code !== 'ENOENT') throw error;
    const first = makeFolder(dirname(folder));
    mkdirSync(folder, { mode: 0o700 });
    return first ?? folder;
  }
}

/** Opens no file that is there: closing it again would free the locks that this process has on it. */
function makeEmpty(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** @throws CannotOpen if the file is damaged or of another version; SQLite's errors */
function check(database: Database, file: string): void {
  const version = numberIn(database, 'PRAGMA user_version');
  if (version === NEW_VERSION && numberIn(database, 'SELECT count(*) FROM sqlite_schema') === 0) {
    database.exec(TABLES);
    return;
  }
  if (version !== VERSION)
    throw new CannotOpen(
      `${file} is not a store of jobs of this version of banana-serve. Give another folder with --jobs local:<folder>.`,
    );
  if (statSync(file).size > MAX_CHECKED_BYTES) return;
  const [first] = database.prepare('PRAGMA quick_check(1)').all() as { quick_check?: string }[];
  if (first?.quick_check !== 'ok') throw new CannotOpen(damaged(file, first?.quick_check ?? 'unreadable'));
}

function numberIn(database: Database, sql: string): number {
  const row = database.prepare(sql).get() as Readonly<Record<string, number>>;
  return Object.values(row)[0] ?? 0;
}

/** The error for the operator: why the store in this folder cannot be opened, and the cure. */
export function explained(error: unknown, folder: string): CannotOpen {
  if (error instanceof CannotOpen) return error;
  return Object.assign(new CannotOpen(explain(error, folder), { cause: error }), { isFull: isFull(error) });
}

function explain(error: unknown, folder: string): string {
  const file = databaseFile(folder);
  if (isTaken(error))
    return `another server uses the store of jobs in ${folder}. End it, or give this one another folder with --jobs local:<folder>.`;
  if (isDamage(error)) return damaged(file, (error as Error).message);
  const place = existsSync(file) ? file : folder;
  return `the store of jobs ${place} cannot be opened: ${reasonOf(error)}. Mend that, or give another folder with --jobs local:<folder>.`;
}

function damagedLog(file: string, { why, wholeBytes }: LogDamage): string {
  const log = quoted(`${file}-wal`);
  const keep = `mv ${log} ${quoted(`${file}-wal.damaged`)}`;
  const anyway =
    wholeBytes === 0 ? keep : `${keep} && head -c ${wholeBytes} ${quoted(`${file}-wal.damaged`)} > ${log}`;
  return `${file} is damaged (${why}), and was left as it is. Restore its folder from a copy; or start without the jobs, and the changes of jobs, that cannot be read, after: ${anyway}`;
}

/** As a shell reads it. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function damaged(file: string, why: string): string {
  return `${file} is damaged (${why.replaceAll('\n', ' ')}), and was left as it is. Restore its folder from a copy, or move it away to begin without its jobs.`;
}
