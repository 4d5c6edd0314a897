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

/** The expiry of a value that never expires: later than any clock, and still a number that a file can store. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER;

export function expiryOf(ttlMs: number | null): number {
  return ttlMs === null ? NEVER_MS : Date.now() + ttlMs;
}
