/**
 * Lets one worker of this host at a time open the file of a store, or rename it: SQLite cannot protect the names of its
 * files, and a store opened during a renaming would mix the files of two stores.
 *
 * It is a lock on an empty file beside the store, taken with SQLite, because Node has no file locks. The system frees
 * it when a process dies.
 */
import { chmodSync, existsSync } from 'node:fs';
import type { DatabaseSync } from '@photostructure/sqlite';

/** @throws SQLite's error for a busy file while another worker holds the lock */
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
