/**
 * Lets one worker of this host at a time open the file of a store, or set it aside: SQLite cannot protect the names of
 * its files, and what is opened while they are renamed would be half of one store and half of another.
 *
 * It is a lock on an empty file beside the store, taken with SQLite, since Node has no locks of its own. The system
 * frees it when a process dies.
 */
import { chmodSync, existsSync } from 'node:fs';
import type { DatabaseSync } from '@photostructure/sqlite';

/** @throws SQLite's error for a busy file while another worker holds the guard */
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
