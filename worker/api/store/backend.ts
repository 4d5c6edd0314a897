/** The interface of a place that keeps bytes; `Store` adds encoding, checks and the end. */
export interface Backend {
  /** Resolves with the bytes, null if the key is missing or expired. */
  get(key: string): Promise<Buffer | null>;
  /** `ttlMs` null: the value never expires. */
  set(key: string, bytes: Buffer, ttlMs: number | null): Promise<void>;
  /** Resolves with whether there was an unexpired value. */
  delete(key: string): Promise<boolean>;
  has(key: string): Promise<boolean>;
  /** Frees what the backend holds. The caller sees to it that no call is running and none follows. */
  close(): Promise<void>;
}

/** The expiry of a value that never expires: later than any clock, and still a number that a file can hold. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER;

export function expiryOf(ttlMs: number | null): number {
  return ttlMs === null ? NEVER_MS : Date.now() + ttlMs;
}
