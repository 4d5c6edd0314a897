/** The options of `new Store`, checked at construction: an error names the allowed values. */
import { isObject, type Fields } from '../../../protocol/values/tensor.js';
import { loadEncoding, type Backend, type Encoding, type EncodingName } from './rules.js';

/**
 * The config of a store in memory.
 * @example
 * const config: MemoryConfig = { encoding: 'msgpack' };
 */
export interface MemoryConfig {
  readonly encoding?: EncodingName | undefined;
}

/**
 * The config of a store in a file.
 * @example
 * const store = new Store({ backend: 'local', config: { path: '/var/lib/app/store.sqlite3' } });
 */
export interface LocalConfig {
  /**
   * The path of the file, relative to the working directory; `.banana-store/store.sqlite3` by default. SQLite keeps
   * other files beside it.
   */
  readonly path?: string | undefined;
  readonly encoding?: EncodingName | undefined;
}

/**
 * The config of a store in a Redis. A plain object with the same fields is accepted too.
 * @example
 * const store = new Store({ backend: 'redis', config: new RedisConfig({ host: 'redis.internal', db: 1 }) });
 */
export class RedisConfig {
  declare readonly host?: string | undefined;
  /** The port of Redis; 6379 by default. */
  declare readonly port?: number | string | undefined;
  declare readonly username?: string | undefined;
  declare readonly password?: string | undefined;
  /** The number of the database; 0 by default. */
  declare readonly db?: number | undefined;
  /** Replaces all of the above: `redis[s]://[[user][:password]@]host[:port][/db]`; `rediss` is TLS. */
  declare readonly url?: string | undefined;
  declare readonly encoding?: EncodingName | undefined;

  constructor(fields: RedisConfig) {
    Object.assign(this, fields);
  }
}

/**
 * The backend `s3` is not supported yet; the name exists for programs that import it.
 * @example
 * const config = new S3Config({ awsAccessKeyId: 'id', awsSecretAccessKey: 'secret', bucket: 'values' });
 */
export class S3Config {
  declare readonly awsAccessKeyId: string;
  declare readonly awsSecretAccessKey: string;
  declare readonly bucket: string;
  declare readonly encoding?: EncodingName | undefined;

  constructor(fields: S3Config) {
    Object.assign(this, fields);
  }
}

/**
 * The options of `new Store`: where it keeps values, and the config of that.
 * @example
 * const options: StoreOptions = { backend: 'redis', config: { url: 'redis://localhost:6379/1' } };
 */
export type StoreOptions =
  | { readonly backend: 'memory'; readonly config?: MemoryConfig | undefined }
  | { readonly backend: 'local'; readonly config?: LocalConfig | undefined }
  | { readonly backend: 'redis'; readonly config: RedisConfig }
  | { readonly backend: 's3'; readonly config: S3Config };

/** A backend that is open, with the encoding of its values. */
export interface Opened {
  readonly backend: Backend;
  readonly encoding: Encoding;
}

/** The same path as in Python, so that the apps of one folder share their values. */
const DEFAULT_PATH = '.banana-store/store.sqlite3';
const DEFAULT_REDIS_PORT = 6379;

/**
 * Returns the function that opens the store, and loads what that needs.
 * @throws TypeError that names the mistake and the allowed values, never a value of `config`
 */
export function checkOptions(options: unknown): () => Promise<Opened> {
  const { backend, config } = objectOf(options, 'new Store() takes { backend, config }');
  switch (backend) {
    case 'memory': {
      const fields = fieldsOf(backend, config ?? {}, []);
      return opening(fields, async () => new (await import('./memory.js')).MemoryBackend());
    }
    case 'local': {
      const fields = fieldsOf(backend, config ?? {}, ['path']);
      const path = text(fields, 'path') ?? DEFAULT_PATH;
      return opening(fields, async () => {
        const { LocalBackend } = await needing('@photostructure/sqlite', import('./local.js'));
        return new LocalBackend(path);
      });
    }
    case 'redis': {
      const fields = fieldsOf(backend, config, ['host', 'port', 'username', 'password', 'db', 'url']);
      const address = addressOf(fields);
      return opening(fields, async () => {
        const { RedisBackend } = await needing('redis', import('./redis.js'));
        return new RedisBackend(address);
      });
    }
    case 's3':
      throw new TypeError("The store backend 's3' is not supported yet. Use 'redis', 'local' or 'memory'.");
    default:
      throw new TypeError(`The store backend must be 'memory', 'local' or 'redis', not ${shown(backend)}.`);
  }
}

function opening(fields: Fields, open: () => Promise<Backend>): () => Promise<Opened> {
  const name = encodingOf(fields);
  return async () => ({ encoding: await loadEncoding(name), backend: await open() });
}

/** Resolves with the file of a backend that imports this package. */
async function needing<File>(name: string, imported: Promise<File>): Promise<File> {
  try {
    return await imported;
  } catch (cause) {
    const code = (cause as { code?: unknown } | null)?.code;
    const why = typeof code === 'string' ? ` (${code})` : '';
    const message = `This store needs the package ${name}, which cannot be loaded${why}. Run: npm install ${name}`;
    throw new Error(message, { cause });
  }
}

function fieldsOf(backend: string, config: unknown, own: readonly string[]): Fields {
  const allowed = [...own, 'encoding'];
  const takes = `The config of a ${backend} store must be an object with ${allowed.join(', ')}`;
  const fields = objectOf(config, takes);
  const unknown = Object.keys(fields).find((name) => !allowed.includes(name));
  if (unknown !== undefined) throw new TypeError(`${takes}; ${shown(unknown)} is not one of them.`);
  return fields;
}

function encodingOf({ encoding = 'json' }: Fields): EncodingName {
  if (encoding === 'json' || encoding === 'msgpack') return encoding;
  if (encoding === 'pickle') {
    throw new TypeError(
      "The encoding 'pickle' is Python's alone. Use 'msgpack' for binary values, or 'json'.",
    );
  }
  throw new TypeError(`The encoding of a store must be 'json' or 'msgpack', not ${shown(encoding)}.`);
}

export type RedisAddress = ReturnType<typeof addressOf>;

/** @throws TypeError */
export function addressOf(given: Fields) {
  const url = text(given, 'url');
  const rival = ['host', 'port', 'username', 'password', 'db'].find((name) => given[name] !== undefined);
  if (url !== undefined && rival !== undefined)
    throw new TypeError(`A redis store takes either a url or host and port: both url and ${rival} are set.`);
  const fields = url === undefined ? given : fieldsOfUrl(url);
  const host = text(fields, 'host');
  if (host === undefined) throw new TypeError('A redis store needs host (and port), or url.');
  return {
    host,
    port: portOf(fields['port']),
    username: text(fields, 'username'),
    password: text(fields, 'password'),
    db: dbOf(fields['db']),
    tls: fields['tls'] === true,
  };
}

const URL_FORM = 'redis://[[user][:password]@]host[:port][/db], or rediss:// for TLS';

function fieldsOfUrl(text: string): Fields {
  // The error of `new URL` would contain the text, password included.
  const url = URL.canParse(text) ? new URL(text) : null;
  const tls = url?.protocol === 'rediss:';
  if (url === null || url.hostname === '' || (url.protocol !== 'redis:' && !tls)) {
    throw new TypeError(`The url of a redis store must be ${URL_FORM}.`);
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? undefined : url.port,
    username: decoded(url.username),
    password: decoded(url.password),
    db: url.pathname.length > 1 ? numberIn(url.pathname.slice(1)) : undefined,
    tls,
  };
}

function decoded(part: string): string | undefined {
  if (part === '') return undefined;
  try {
    return decodeURIComponent(part);
  } catch {
    throw new TypeError(
      'The user or password in the url of a redis store has a % that is not an escape; write %25.',
    );
  }
}

function portOf(port: unknown = DEFAULT_REDIS_PORT): number {
  const number = typeof port === 'string' ? numberIn(port) : port;
  if (isWhole(number) && number >= 1 && number <= 65_535) return number;
  throw new TypeError('The port of a redis store must be a number from 1 to 65535.');
}

function dbOf(db: unknown = 0): number {
  if (isWhole(db) && db >= 0) return db;
  throw new TypeError('The db of a redis store must be a whole number from 0.');
}

function isWhole(value: unknown): value is number {
  return Number.isInteger(value);
}

function numberIn(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : NaN;
}

function text(fields: Fields, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value !== '') return value;
  throw new TypeError(`The ${name} of a store must be a non-empty string.`);
}

function objectOf(value: unknown, takes: string): Fields {
  if (isObject(value)) return value;
  throw new TypeError(`${takes}.`);
}

/** Shows an identifier as it is, any other value only by its type. */
function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : typeof value;
}
