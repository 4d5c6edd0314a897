/**
 * Values in one SQLite file, shared by every process of this host that opens it, also those in Python. In SQLite's WAL
 * mode writers take turns, readers never wait, and a commit is complete or absent whenever a process dies.
 *
 * SQLite is called synchronously, and no transaction outlasts such a call, so a busy worker never holds the lock that
 * the others wait for. This process does not sleep while it waits for the lock either: a call that meets a lock is
 * repeated later. Writes that begin in one turn of the event loop are committed together, which costs one fsync.
 */
import { resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { LocalConnection, inodeOf, setAside, withGuard } from './local-connection.js';
import { expiryOf, SWEPT_BY_A_WRITE, type Backend } from './rules.js';
import { isBusy, isDamage, reasonOf, untilFree } from './sqlite-errors.js';

type Step<T> = (connection: LocalConnection) => T;

interface Write {
  readonly step: Step<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class LocalBackend implements Backend {
  readonly #file: string;
  #connection: LocalConnection | null = null;
  /** Writes that are in no transaction yet, in their order. */
  #waiting: Write[] = [];
  /** Resolves once no write waits; null if none does. */
  #writing: Promise<void> | null = null;

  /** The first call opens the file. */
  constructor(path: string) {
    this.#file = resolve(path);
  }

  get(key: string): Promise<Buffer | null> {
    return this.#run((connection) => connection.get(key));
  }

  set(key: string, bytes: Buffer, ttlMs: number | null): Promise<void> {
    const expiresAt = expiryOf(ttlMs) / 1000;
    return this.#write((connection) => connection.put(key, bytes, expiresAt));
  }

  delete(key: string): Promise<boolean> {
    return this.#write((connection) => connection.remove(key));
  }

  async close(): Promise<void> {
    await this.#writing;
    this.#letGo();
  }

  #write<T>(step: Step<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ step, resolve: resolve as Write['resolve'], reject });
      this.#writing ??= this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    do {
      await setImmediate(); // by then all writes of this turn are waiting
      const writes = this.#waiting;
      this.#waiting = [];
      await this.#commit(writes, SWEPT_BY_A_WRITE * writes.length);
    } while (this.#waiting.length > 0);
    this.#writing = null;
  }

  /**
   * Commits these writes together, and removes up to `swept` expired entries; one by one if that fails, so that a write which
   * cannot be done fails alone.
   */
  async #commit(writes: readonly Write[], swept: number): Promise<void> {
    try {
      const results = await this.#run((connection) =>
        connection.transaction(() => {
          if (swept > 0) connection.sweep(swept);
          return writes.map(({ step }) => step(connection));
        }),
      );
      for (const [i, { resolve }] of writes.entries()) resolve(results[i]);
    } catch (error) {
      if (swept > 0 && !isBusy((error as Error).cause)) {
        for (const write of writes) await this.#commit([write], 0);
      } else {
        for (const { reject } of writes) reject(error);
      }
    }
  }

  sweep(limit: number): void {
    try {
      this.#attempt((connection) => connection.transaction(() => connection.sweep(limit)));
    } catch {
      // The calls that meet an error of the store report it; the rest is removed at another time.
    }
  }

  async #run<T>(step: Step<T>): Promise<T> {
    try {
      return await untilFree(() => this.#attempt(step));
    } catch (cause) {
      throw new Error(`The local store ${this.#file} cannot be used: ${reasonOf(cause as Error)}.`, {
        cause,
      });
    }
  }

  /** Runs a step on the connection; once more on a new file if this one is damaged. */
  #attempt<T>(step: Step<T>): T {
    const connection = this.#open();
    try {
      return step(connection);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#letGo();
      withGuard(this.#file, () => setAside(this.#file, connection.inode, (error as Error).message));
      return step(this.#open());
    }
  }

  /** Returns the connection to the file that now has the store's name. */
  #open(): LocalConnection {
    if (this.#connection?.inode !== inodeOf(this.#file)) this.#letGo();
    this.#connection ??= LocalConnection.open(this.#file);
    return this.#connection;
  }

  #letGo(): void {
    this.#connection?.close();
    this.#connection = null;
  }
}
