/**
 * Values in one file, shared by every process of this host that opens it (LMDB: writers take turns, a commit is
 * whole or absent whenever a process dies, readers never wait).
 *
 * Two tables, always written together: `values`, and `expiries`, small, for the sweep to read. In both the version
 * of an entry is its expiry, and the sweep removes an entry only if it still has the version that was seen expired:
 * one that another process has set anew stays. Writes run outside the event loop, so that a busy worker never holds
 * the lock that the others wait for.
 */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import type { Database, RootDatabase } from 'lmdb';
import { expiryOf, NEVER_MS, type Backend } from './backend.js';
import { setAsideIfDamaged } from './damaged-file.js';
import { loadPackage } from './load-package.js';
import { prepareFile } from './local-file.js';
import { Sweeper } from './sweeper.js';

type Table = Database<Uint8Array, Uint8Array>;

/** Each reading thread takes one entry of the reader table; the library's default is 126. */
const MAX_READERS = 1024;
/** The longest key in bytes; the library allows 1978. */
const MAX_KEY_BYTES = 1024;

export class LocalBackend implements Backend {
  readonly #file: string;
  readonly #root: RootDatabase<Uint8Array, Uint8Array>;
  readonly #values: Table;
  readonly #expiries: Table;
  readonly #sweeper = new Sweeper((limit) => this.#sweep(limit));
  /** Key at which the next sweep goes on. */
  #cursor: Uint8Array = FIRST;

  static async open(path: string): Promise<LocalBackend> {
    const { open } = await loadPackage('lmdb', () => import('lmdb'));
    const file = resolve(path);
    const table = { encoding: 'binary', keyEncoding: 'binary', useVersions: true } as const;
    try {
      await setAsideIfDamaged(file, table);
      prepareFile(file);
      const root = open<Uint8Array, Uint8Array>({
        path: file,
        noSubdir: true,
        // A commit is on disk before anyone sees it: the plainest of the library's ways, and no slower here.
        overlappingSync: false,
        // `#write` makes the transactions; the library's own, one per turn, fail with a promise that nobody sees.
        eventTurnBatching: false,
        maxReaders: MAX_READERS,
        permissionsMode: 0o600, // the permissions of the lock file
        ...table,
      } as Parameters<typeof open>[0]);
      return new LocalBackend(file, root, root.openDB('values', table), root.openDB('expiries', table));
    } catch (cause) {
      throw new Error(`The local store ${file} cannot be opened: ${(cause as Error).message}`, { cause });
    }
  }

  private constructor(
    file: string,
    root: RootDatabase<Uint8Array, Uint8Array>,
    values: Table,
    expiries: Table,
  ) {
    this.#file = file;
    this.#root = root;
    this.#values = values;
    this.#expiries = expiries;
  }

  get(key: string): Promise<Buffer | null> {
    return Promise.resolve(this.#read(keyBytes(key)));
  }

  async set(key: string, bytes: Buffer, ttlMs: number | null): Promise<void> {
    const id = keyBytes(key);
    const expiresAtMs = expiryOf(ttlMs);
    const written = this.#write(() => [
      this.#values.put(id, bytes, expiresAtMs),
      expiresAtMs === NEVER_MS ? this.#expiries.remove(id) : this.#expiries.put(id, NOTHING, expiresAtMs),
    ]);
    this.#sweeper.afterWrite();
    await written;
  }

  async delete(key: string): Promise<boolean> {
    const id = keyBytes(key);
    const existed = this.#read(id) !== null;
    await this.#write(() => [this.#values.remove(id), this.#expiries.remove(id)]);
    return existed;
  }

  has(key: string): Promise<boolean> {
    return Promise.resolve(this.#read(keyBytes(key)) !== null);
  }

  /** Number of entries held, including expired ones that are not yet removed. */
  get size(): number {
    return this.#values.getKeysCount();
  }

  async close(): Promise<void> {
    this.#sweeper.stop();
    await this.#root.close();
  }

  #read(id: Uint8Array): Buffer | null {
    const entry = this.#values.getEntry(id);
    this.#letGo();
    if (entry === undefined || (entry.version as number) <= Date.now()) return null;
    return entry.value as Buffer;
  }

  #sweep(limit: number): void {
    const now = Date.now();
    const seen = [
      ...this.#expiries.getRange({ start: this.#cursor, exclusiveStart: true, limit, versions: true }),
    ];
    this.#letGo();
    this.#cursor = seen.length < limit ? FIRST : (seen.at(-1)?.key ?? FIRST);
    const expired = seen.filter(({ version }) => (version as number) <= now);
    if (expired.length === 0) return;
    const removed = this.#write(() =>
      expired.flatMap(({ key, version }) => [
        this.#values.remove(key, version as number),
        this.#expiries.remove(key, version as number),
      ]),
    );
    removed.catch(() => {}); // nobody waits for this promise; what stays is swept another time
  }

  /** Commits all of the changes or none. A promise of the library's that failed unseen would end the process. */
  async #write(begin: () => Promise<boolean>[]): Promise<void> {
    let parts: Promise<boolean>[] = [];
    const whole = this.#root.batch(() => {
      parts = begin();
    });
    try {
      await Promise.all([whole, ...parts]);
    } catch (cause) {
      (cause as { commitError?: Promise<unknown> }).commitError?.catch(() => {});
      throw new Error(`The local store ${this.#file} cannot be written; the disk may be full.`, { cause });
    }
  }

  /** A snapshot kept while an app computes would keep every page of its time, and the file would grow. */
  #letGo(): void {
    this.#root.resetReadTxn();
  }
}

const NOTHING = new Uint8Array(1);
const FIRST = new Uint8Array([0]);
const WHOLE = 1;
const HASHED = 2;

/** Returns the key as the file holds it: a long one is replaced by its SHA-256. */
function keyBytes(key: string): Uint8Array {
  const bytes = Buffer.from(key);
  if (bytes.length <= MAX_KEY_BYTES) return Buffer.concat([Buffer.of(WHOLE), bytes]);
  return Buffer.concat([Buffer.of(HASHED), createHash('sha256').update(bytes).digest()]);
}
