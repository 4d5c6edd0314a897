/**
 * A small key-value store for apps: `new Store({ backend, config })`, then `get`, `set`, `delete`, `has`.
 *
 * The constructor checks the options and loads nothing; the first call loads the backend and its package.
 */
import { checkOptions, type Opened, type StoreOptions } from './config.js';
import { checkKey, sweepRegularly, ttlMsOf } from './rules.js';

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
  readonly #load: () => Promise<Opened>;
  readonly #running = new Set<Promise<unknown>>();
  #opened: Promise<Opened> | null = null;
  #sweeping: NodeJS.Timeout | undefined;
  #closed: Promise<void> | null = null;

  /** @throws TypeError if the backend or its config is wrong; the message names the allowed values */
  constructor(options: StoreOptions) {
    this.#load = checkOptions(options);
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
      this.#sweeping ??= sweepRegularly(backend);
      return backend.set(key, encoding.encode(value), ttlMs);
    });
  }

  /** Resolves with true if there was a value. */
  delete(key: string): Promise<boolean> {
    return this.#run(key, ({ backend }) => backend.delete(key));
  }

  /** Resolves with true if there is a value, also for a stored null. */
  has(key: string): Promise<boolean> {
    return this.#run(
      key,
      async ({ backend }) => (await backend.has?.(key)) ?? (await backend.get(key)) !== null,
    );
  }

  /** Waits for running calls, then frees the file or connection. Values stay, except those of `memory`. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#running);
    clearInterval(this.#sweeping);
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
    this.#opened ??= this.#load().catch((thrown: unknown) => {
      this.#opened = null;
      throw thrown;
    });
    return this.#opened;
  }
}
