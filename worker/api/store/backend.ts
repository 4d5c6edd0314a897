/** Stores bytes; `Store` adds encoding, checks and closing. */
export interface Backend {
  /** Resolves with the bytes, null if the key is missing or expired. */
  get(key: string): Promise<Buffer | null>;
  /** `ttlMs` null: the value never expires. */
  set(key: string, bytes: Buffer, ttlMs: number | null): Promise<void>;
  /** Resolves with true if there was an unexpired value. */
  delete(key: string): Promise<boolean>;
  has(key: string): Promise<boolean>;
  /** Frees the backend's resources. The caller ensures that no call is running and none follows. */
  close(): Promise<void>;
}

/** In ms since the epoch; infinite for a value that never expires. */
export function expiryOf(ttlMs: number | null): number {
  return Date.now() + (ttlMs ?? Infinity);
}

/** Entries that each write looks at and removes if they are expired, so that these stay in proportion to the live ones. */
export const SWEPT_BY_A_WRITE = 16;

const SWEPT_BY_A_TICK = 1000;
const TICK_MS = 10_000;

/**
 * Removes expired entries of a store without further writes: calls `sweep` with the most entries to look at. The timer keeps no
 * process alive.
 */
export function sweepRegularly(sweep: (limit: number) => void): NodeJS.Timeout {
  return setInterval(() => sweep(SWEPT_BY_A_TICK), TICK_MS).unref();
}

/** Loads a package that only one backend needs, when that backend is first used. */
export async function loadPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const code = (cause as { code?: unknown } | null)?.code;
    const why = typeof code === 'string' ? ` (${code})` : '';
    const message = `This store needs the package ${name}, which cannot be loaded${why}. Run: npm install ${name}`;
    throw new Error(message, { cause });
  }
}
