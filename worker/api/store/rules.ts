/**
 * The rules of every store: keys, times to live, encodings, and when expired values are removed. The backends (`memory.ts`,
 * `local.ts`, `redis.ts`) only read and write bytes.
 */
export interface Backend {
  /** Resolves with the bytes, null if the key is missing or expired. */
  get(key: string): Promise<Buffer | null>;
  /** `ttlMs` null: the value never expires. */
  set(key: string, bytes: Buffer, ttlMs: number | null): Promise<void>;
  /** Resolves with true if there was an unexpired value. */
  delete(key: string): Promise<boolean>;
  /** Left out if `get` is as quick. */
  has?(key: string): Promise<boolean>;
  /** Removes expired values, after a look at `limit` of them at most; left out if they leave by themselves. Never throws. */
  sweep?(limit: number): void;
  /** Frees the backend's resources. The caller ensures that no call is running and none follows. */
  close(): Promise<void>;
}

/** @throws TypeError */
export function checkKey(key: unknown): void {
  if (typeof key !== 'string' || key === '') throw new TypeError('A key must be a non-empty string.');
  if (/\p{Surrogate}/u.test(key))
    throw new TypeError('A key must be valid text; this one has half of a surrogate pair.');
}

const DEFAULT_TTL_SECONDS = 600;
/** The longest time to live in seconds, 300 years; values with a longer one never expire. */
const MAX_TTL_SECONDS = 1e10;

/** Null for a value that never expires. @throws TypeError */
export function ttlMsOf(given: unknown): number | null {
  const ttl = typeof given === 'object' && given !== null ? (given as { ttl?: unknown }).ttl : given;
  if (ttl === null) return null;
  if (ttl === undefined) return DEFAULT_TTL_SECONDS * 1000;
  if (typeof ttl === 'number' && ttl > 0 && ttl <= MAX_TTL_SECONDS) return ttl * 1000;
  throw new TypeError(
    `ttl must be a number of seconds above 0 and up to ${MAX_TTL_SECONDS}, or null for a value that never expires.`,
  );
}

/** In ms since the epoch; infinite for a value that never expires. */
export function expiryOf(ttlMs: number | null): number {
  return Date.now() + (ttlMs ?? Infinity);
}

/** Entries that each write looks at and removes if they are expired, so that these stay in proportion to the live ones. */
export const SWEPT_BY_A_WRITE = 16;

const SWEPT_BY_A_TICK = 1000;
const TICK_MS = 10_000;

/** Removes expired values without further writes. The timer keeps no process alive. */
export function sweepRegularly(backend: Backend): NodeJS.Timeout {
  return setInterval(() => backend.sweep?.(SWEPT_BY_A_TICK), TICK_MS).unref();
}

export type EncodingName = 'json' | 'msgpack';

/** Makes bytes of values and values of bytes. No message of its errors contains any part of a value. */
export interface Encoding {
  /** @throws TypeError if the value cannot be encoded */
  encode(value: unknown): Buffer;
  /** @throws Error if the bytes have another encoding */
  decode(bytes: Buffer): unknown;
}

/** The encoder is loaded on first use. */
export async function loadEncoding(name: EncodingName): Promise<Encoding> {
  const codec = name === 'json' ? await jsonCodec() : await msgpackCodec();
  return {
    encode(value) {
      if (value === undefined || typeof value === 'function' || typeof value === 'symbol') {
        throw new TypeError(`A store holds data, not ${typeof value}; store null, or delete the key.`);
      }
      try {
        return codec.encode(value);
      } catch {
        // The encoder's own message would quote the value.
        throw new TypeError(
          `The value cannot be stored as ${name}: it holds a cycle, a getter that throws, a BigInt too large, or something that is not data (a promise, Map, Set, function, error).`,
        );
      }
    },
    decode(bytes) {
      try {
        return codec.decode(bytes);
      } catch {
        throw new Error(
          `The stored value is not ${name}; it was written with another encoding or by another program.`,
        );
      }
    },
  };
}

async function jsonCodec(): Promise<Encoding> {
  const { encodeJson } = await import('../../values/json-encoding.js');
  return { encode: encodeJson, decode: (bytes) => JSON.parse(bytes.toString('utf8')) as unknown };
}

async function msgpackCodec(): Promise<Encoding> {
  const { readMsgpack, writeMsgpack } = await import('../../formats/msgpack.js');
  return { encode: writeMsgpack, decode: readMsgpack };
}
