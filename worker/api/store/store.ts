/**
 * A small key-value store for apps: `new Store({ backend, config })`, then `get`, `set`, `delete`, `has`.
 *
 * The constructor checks the options and loads nothing; the first call loads the backend and its package. This file
 * contains the parts that all backends share: keys, TTLs, encoding, closing.
 */
import type { Backend } from './backend.js';
import { checkOptions, type StoreOptions, type StorePlan } from './config.js';
import { loadEncoding, type Encoding } from './encoding.js';

const DEFAULT_TTL_SECONDS = 600;
/** The longest time to live in seconds, 300 years; values with a longer one never expire. */
const MAX_TTL_SECONDS = 1e10;

interface Opened {
  readonly backend: Backend;
  readonly encoding: Encoding;
}

/**
 * Keeps values for the app: in memory, in a file that all workers of a machine share, or in a Redis.
 * @example
 * const store = new Store({ backend: 'local' });
 * export async function inference({ user }: { user: string }) {
 *   const visits = ((await store.get<number>(user)) ?? 0) + 1;
 *   await store.set(user, visits, 3600);
 *   return { visits };
 * }
 */
export class Store {
  readonly #plan: StorePlan;
  readonly #running = new Set<Promise<unknown>>();
  #opened: Promise<Opened> | null = null;
  #closed: Promise<void> | null = null;

  /** @throws TypeError if the backend or its config is wrong; the message names the allowed values */
  constructor(options: StoreOptions) {
    this.#plan = checkOptions(options);
  }

  /** Resolves with a copy of the value, null if the key is missing or expired. */
  get<T = unknown>(key: string): Promise<T | null> {
    return this.#run(key, async ({ backend, encoding }) => {
      const bytes = await backend.get(key);
      return bytes === null ? null : (encoding.decode(bytes) as T);
    });
  }

  /**
   * Resolves once every later `get` finds the value. `ttl` in seconds, fractions allowed, 600 if left out; null means
   * that the value never expires.
   */
  set(
    key: string,
    value: unknown,
    ttl?: number | null | { readonly ttl?: number | null | undefined },
  ): Promise<void> {
    return this.#run(key, ({ backend, encoding }) => {
      const ttlMs = ttlMsOf(ttl);
      return backend.set(key, encoding.encode(value), ttlMs);
    });
  }

  /** Resolves with true if there was a value. */
  delete(key: string): Promise<boolean> {
    return this.#run(key, ({ backend }) => backend.delete(key));
  }

  /** Resolves with true if there is a value, also for a stored null. */
  has(key: string): Promise<boolean> {
    return this.#run(key, ({ backend }) => backend.has(key));
  }

  /** Waits for running calls, then frees the file or connection. Values stay, except those of `memory`. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#running);
    const opened = await this.#opened?.catch(() => null);
    await opened?.backend.close();
  }

  async #run<T>(key: unknown, call: (opened: Opened) => Promise<T>): Promise<T> {
    checkKey(key);
    if (this.#closed !== null) throw new Error('The store is closed.');
    const running = this.#open().then(call);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Opens the backend once for all waiting callers; after a failure the next call tries again. */
  #open(): Promise<Opened> {
    this.#opened ??= openPlan(this.#plan).catch((thrown: unknown) => {
      this.#opened = null;
      throw thrown;
    });
    return this.#opened;
  }
}

async function openPlan({ encoding, open }: StorePlan): Promise<Opened> {
  return { encoding: await loadEncoding(encoding), backend: await open() };
}

function checkKey(key: unknown): void {
  if (typeof key !== 'string' || key === '') throw new TypeError('A key must be a non-empty string.');
  if (/\p{Surrogate}/u.test(key))
    throw new TypeError('A key must be valid text; this one has half of a surrogate pair.');
}

function ttlMsOf(given: unknown): number | null {
  const ttl = typeof given === 'object' && given !== null ? (given as { ttl?: unknown }).ttl : given;
  if (ttl === null) return null;
  if (ttl === undefined) return DEFAULT_TTL_SECONDS * 1000;
  if (typeof ttl === 'number' && ttl > 0 && ttl <= MAX_TTL_SECONDS) return ttl * 1000;
  throw new TypeError(
    `ttl must be a number of seconds above 0 and up to ${MAX_TTL_SECONDS}, or null for a value that never expires.`,
  );
}
