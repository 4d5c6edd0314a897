/** Values in this process only, lost at its end. */
import { expiryOf, SWEPT_BY_A_WRITE, type Backend } from './rules.js';

interface Entry {
  readonly bytes: Buffer;
  readonly expiresAtMs: number;
}

export class MemoryBackend implements Backend {
  readonly #entries = new Map<string, Entry>();
  #cursor = this.#entries.entries();

  /** Number of values held, including expired ones that are not yet removed. */
  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Promise<Buffer | null> {
    return Promise.resolve(this.#read(key)?.bytes ?? null);
  }

  set(key: string, bytes: Buffer, ttlMs: number | null): Promise<void> {
    this.#entries.set(key, { bytes, expiresAtMs: expiryOf(ttlMs) });
    this.sweep(SWEPT_BY_A_WRITE);
    return Promise.resolve();
  }

  delete(key: string): Promise<boolean> {
    const existed = this.#read(key) !== undefined;
    this.#entries.delete(key);
    return Promise.resolve(existed);
  }

  close(): Promise<void> {
    this.#entries.clear();
    return Promise.resolve();
  }

  #read(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.expiresAtMs > Date.now() ? entry : undefined;
  }

  /** Goes on from where it last stopped. */
  sweep(limit: number): void {
    const now = Date.now();
    for (let looked = 0; looked < limit; looked += 1) {
      const next = this.#cursor.next();
      if (next.done === true) {
        this.#cursor = this.#entries.entries();
        return;
      }
      const [key, { expiresAtMs }] = next.value;
      if (expiresAtMs <= now) this.#entries.delete(key);
    }
  }
}
