/** Reads the values of options that have a form of their own: GPUs, the place of jobs, origins, models, secrets' names and more. */
import { isModelName } from './model-name.js';
import { NotAllowed, listOf, parseBytes, partsOf } from './units.js';

/** `all`, `none`, `first:2` for at most two, or comma-separated indexes and ids as nvidia-smi prints them. @throws NotAllowed */
export function parseGpus(raw: unknown): string {
  const text = typeof raw === 'number' ? String(raw) : raw;
  if (typeof text !== 'string' || !GPU_LIST.test(text)) throw new NotAllowed(ALLOWED_GPUS);
  return text;
}

const GPU_LIST =
  /^(all|none|first:[1-9]\d{0,3}|(?:\d+|(?:GPU|MIG)-[\w/-]+)(?:,\s*(?:\d+|(?:GPU|MIG)-[\w/-]+))*)$/;

const ALLOWED_GPUS = 'all, none, or a comma-separated list such as 0,2 or GPU-5d5ba0d6 or MIG-c7384736';

/** `folder`: as given; relative paths begin in the folder of the server. */
export type JobsPlace =
  | { readonly in: 'memory' }
  | { readonly in: 'local'; readonly folder: string }
  | { readonly in: 'redis'; readonly url: string };

export const IN_MEMORY: JobsPlace = { in: 'memory' };

const DEFAULT_FOLDER = '.banana-jobs';

/** @throws NotAllowed */
export function parseJobsPlace(raw: unknown): JobsPlace {
  const text = typeof raw === 'string' ? raw.trim() : '';
  if (text === 'memory') return IN_MEMORY;
  if (text === 'local') return { in: 'local', folder: DEFAULT_FOLDER };
  const folder = text.startsWith('local:') ? text.slice('local:'.length).trim() : '';
  if (folder !== '') return { in: 'local', folder };
  if (isRedisUrl(text)) return { in: 'redis', url: text };
  throw new NotAllowed('memory, local, local: and the path of a folder, or redis://host:port of one Redis');
}

/** A password may have any character in its %-form. */
function isRedisUrl(text: string): boolean {
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { hostname, pathname, search, hash } = new URL(text);
  return hostname !== '' && /^\/?\d{0,4}$/.test(pathname) && search === '' && hash === '';
}

/** Parses `2gb`, or `50%` of what there is. @throws NotAllowed */
export function parseBudget(raw: unknown): { readonly bytes: number } | { readonly share: number } {
  const percent = typeof raw === 'string' ? /^(\d+(?:\.\d+)?)\s*%$/.exec(raw.trim())?.[1] : undefined;
  const share = Number(percent) / 100;
  if (percent !== undefined && share > 0 && share <= 1) return { share };
  const bytes = percent === undefined ? sizeOf(raw) : 0;
  if (bytes > 0) return { bytes };
  throw new NotAllowed('a size above 0 such as 512mb or 2gb, or a share such as 50%');
}

/** The budget of memory of this size. */
export function bytesOf(budget: ReturnType<typeof parseBudget>, totalBytes: number): number {
  return 'bytes' in budget ? budget.bytes : Math.floor(budget.share * totalBytes);
}

function sizeOf(raw: unknown): number {
  try {
    return parseBytes(raw);
  } catch (error) {
    if (error instanceof NotAllowed) return 0; // refused in words of its own
    throw error;
  }
}

/** `*` allows every origin. */
export type AllowedOrigins = '*' | readonly string[];

/** Reads `*`, or one or more origins from a comma-separated text or an array. @throws NotAllowed */
export function parseOrigins(raw: unknown): AllowedOrigins {
  return listOf(raw).join() === '*' ? '*' : partsOf(raw, isOrigin, ALLOWED_ORIGINS);
}

const ALLOWED_ORIGINS =
  '* for every page, or origins separated by commas, such as https://app.example.com: no path, no slash at the end';

/** Origins are compared exactly with the header of the browser; a text that no browser sends is a mistake. */
function isOrigin(text: string): boolean {
  if (/^https?:/i.test(text))
    return !text.includes('*') && URL.canParse(text) && new URL(text).origin === text;
  return OTHER_SCHEME.test(text);
}

/** The origin of an app's web view, or of a browser's extension. */
const OTHER_SCHEME = /^[a-z][a-z\d+.-]*:\/\/[a-z\d.-]+(?::\d+)?$/;

/** Reads tokens such as methods or header names from a comma-separated text or an array. @throws NotAllowed */
export function parseTokens(raw: unknown, example: string): readonly string[] {
  return partsOf(raw, (word) => TOKEN.test(word), `names separated by commas, such as ${example}`);
}

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

export const TLS_LISTENERS = ['main', 'management', 'metrics'] as const;
export type TlsListener = (typeof TLS_LISTENERS)[number];

/** Reads names of listeners from a comma-separated text or an array; the array may be empty. @throws NotAllowed */
export function parseTlsListeners(raw: unknown): readonly TlsListener[] {
  if (Array.isArray(raw) && raw.length === 0) return [];
  const known: readonly string[] = TLS_LISTENERS;
  const allowed = `one or several of ${known.join(', ')}, separated by commas`;
  return partsOf(raw, (name) => known.includes(name), allowed) as TlsListener[];
}

export interface WantedModel {
  /** Null: the name comes from the store. */
  readonly name: string | null;
  /** Path in the store. */
  readonly url: string;
}

/**
 * Reads `all`, everything in the store that can be a model, `none`, or `[name=]path` from a comma-separated text or an array.
 * @throws NotAllowed
 */
export function parseWantedModels(raw: unknown): 'all' | readonly WantedModel[] {
  const given: readonly unknown[] = Array.isArray(raw) ? raw : [raw];
  const texts = given.flatMap((one) => (typeof one === 'string' ? listOf(one) : ['']));
  const [only = '', ...others] = texts.map((text) => text.toLowerCase());
  if (others.length === 0 && only === 'all') return 'all';
  if (others.length === 0 && only === 'none') return [];
  if (texts.length === 0) throw new NotAllowed(ALLOWED_MODELS);
  return texts.map(parseWantedModel);
}

const ALLOWED_MODELS =
  'all, none, or paths in the model store, separated by commas, each optionally after a name: digits,cats=zoo/cats';

function parseWantedModel(text: string): WantedModel {
  const [name = '', ...rest] = text.split('=');
  if (rest.length > 0 && !name.includes('/')) {
    const url = rest.join('=').trim();
    if (!isModelName(name.trim()) || url === '') throw new NotAllowed(ALLOWED_MODELS);
    return { name: name.trim(), url };
  }
  if (text === '') throw new NotAllowed(ALLOWED_MODELS);
  return { name: null, url: text };
}

/** @throws NotAllowed */
export function parseHandler(raw: unknown): string {
  if (typeof raw !== 'string' || !/^[^:\s]+(?::[\w$]+)?$/.test(raw.trim()))
    throw new NotAllowed('a file of the model, optionally followed by a function or class: service:handle');
  return raw.trim();
}

/** Names separated by commas; the worker compares them with those that its onnxruntime has. @throws NotAllowed */
export function parseProviders(raw: unknown): string {
  const names = partsOf(
    typeof raw === 'string' ? raw : [],
    (name) => /^[a-z]\w*$/i.test(name),
    ALLOWED_PROVIDERS,
  );
  if (new Set(names.map((name) => name.toLowerCase())).size === names.length) return names.join(',');
  throw new NotAllowed(ALLOWED_PROVIDERS);
}

const ALLOWED_PROVIDERS = 'names of execution providers, separated by commas, such as cuda,cpu';

/**
 * Environment variables whose names look like secrets. A server of a model store without an app withholds them from
 * workers unless --withhold-env is given. They do not match variables that runtimes and libraries need: PWD, GPG_KEY (of
 * Python images), TOKENIZERS_PARALLELISM, HF_HOME, CUDA_VISIBLE_DEVICES. docs/security.md shows these expressions, and a
 * test compares them.
 */
export const SECRET_NAMES: readonly string[] = [
  '.*(?:SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|PRIVATE_?KEY).*',
  '(?:.*_)?(?:TOKEN|PASS|PAT|DSN|CONNECTION_STRING)',
  '.*AUTH_?TOKEN',
  '.+_PWD',
  '(?:.*_)?(?:API|ACCOUNT|STORAGE|AUTH|SIGNING|ENCRYPTION|MASTER)_?KEY',
  '(?:.*_)?ACCESS_?KEY(?:_ID)?',
  '(?:.*_)?(?:DATABASE|DB|REDIS|MONGO|MONGODB|POSTGRES|POSTGRESQL|MYSQL|AMQP|CLOUDAMQP|RABBITMQ|BROKER)_UR[IL]',
];

/** Matches whole names, in any case. */
export const SECRET_PATTERN = new RegExp(`^(?:${SECRET_NAMES.join('|')})$`, 'i');

/** Reads `--withhold-env`: an expression that matches whole names; null for an empty text. @throws NotAllowed */
export function parseNamePattern(raw: unknown): RegExp | null {
  try {
    if (typeof raw === 'string') return raw.trim() === '' ? null : new RegExp(`^(?:${raw})$`);
  } catch {
    // not a regular expression: refused below
  }
  throw new NotAllowed(
    "a regular expression that matches whole variable names, such as AWS_.*|.*_TOKEN, or '' for none",
  );
}
