/**
 * The web addresses from which models may be downloaded (`--allowed-urls`): beginnings of addresses, compared after both
 * are parsed as URLs. They are never patterns: something that looks like one would allow more than its author meant, or,
 * read as text, nothing.
 */
import { NotAllowed } from './units.js';

/** The beginning of allowed addresses. */
interface UrlEntry {
  /** `http:` or `https:`; each matches only itself. */
  readonly protocol: string;
  /** In lower case. Only this exact host matches, not its subdomains. */
  readonly hostname: string;
  /** Empty: the scheme's default port. Null: any port. */
  readonly port: string | null;
  /** Prefix of the allowed paths. */
  readonly path: string;
}

export interface AllowedUrls {
  readonly entries: readonly UrlEntry[];
  /** Entries that cannot be used, each with the reason; they allow nothing. */
  readonly unusable: readonly string[];
}

export const NO_URLS: AllowedUrls = { entries: [], unusable: [] };

/** Reads entries from a comma-separated text or an array; unusable ones are kept apart. @throws NotAllowed if one is not a string */
export function parseAllowedUrls(raw: unknown): AllowedUrls {
  const given: readonly unknown[] = Array.isArray(raw) ? raw : [raw];
  if (!given.every((one) => typeof one === 'string')) throw new NotAllowed(ALLOWED);
  const texts = given.flatMap((text) => text.split(',')).map((text) => text.trim());
  const entries: UrlEntry[] = [];
  const unusable: string[] = [];
  for (const text of texts.filter((one) => one !== '')) {
    const read = parseEntry(text);
    if (typeof read === 'string') unusable.push(`${text.replace(/\/\/.*@/s, '//')}: ${read}`);
    else entries.push(read);
  }
  return { entries, unusable };
}

const ALLOWED =
  'beginnings of addresses, separated by commas: https://models.example.com/zoo/, http://store.internal:9000/';

/** Whether an entry allows this address. An address with a user or a password is never allowed. */
export function isAllowedUrl(url: URL, { entries }: AllowedUrls): boolean {
  if (url.username !== '' || url.password !== '') return false;
  return entries.some((entry) => matches(url, entry));
}

function matches({ protocol, hostname, port, pathname }: URL, entry: UrlEntry): boolean {
  return (
    protocol === entry.protocol &&
    hostname === entry.hostname &&
    (entry.port === null || port === entry.port) &&
    pathname.startsWith(entry.path) &&
    !mayClimb(pathname)
  );
}

/**
 * Some servers decode an encoded slash, and some cut parameters off each part of a path (`..;a=b`), or end it at a decoded
 * `?`, `#` or null: a path with `..` after that could leave the allowed prefix.
 */
function mayClimb(pathname: string): boolean {
  const read = pathname
    .replace(/%(?:25)*2e/gi, '.')
    .replace(/%(?:25)*(?:00|23|3b|3f)/gi, ';')
    .replace(/%(?:25)*(?:2f|5c)|\\/gi, '/');
  return read.split('/').some((part) => part === '..' || part.startsWith('..;'));
}

/** Returns the entry, or the reason why it cannot be used. */
function parseEntry(text: string): UrlEntry | string {
  const [, authority, rest] = /^https?:\/\/([^/?#\\]*)(.*)$/is.exec(text) ?? [];
  if (authority === undefined || rest === undefined)
    return 'begin it with https://, or with http:// if it needs no protection in transit';
  if (authority.includes('@')) return 'leave out the user and the password; an address may not have them';
  if (PATTERN.test(rest) || PATTERN.test(authority.replace(/^\[[\da-f:.]+\]/i, ''))) return IS_PATTERN;
  if (!URL.canParse(text)) return 'it is not a URL';
  const { protocol, hostname, port, pathname } = new URL(text);
  return { protocol, hostname, port: authority.endsWith(':') ? null : port, path: pathname };
}

/** Characters of a regular expression, or of a query, which is not compared. */
const PATTERN = /[*+?|^$()[\]{}\\#\s]/;

const IS_PATTERN =
  'it is the beginning of an address, not a pattern; name each host, such as https://models.example.com/zoo/';

/** The address without user, password, query and fragment, which may contain secrets: safe to log or send. */
export function withoutSecrets(url: string): string {
  const rest = URL.canParse(url) ? /^(https?:)[/\\]*[^/?#\\]*@/i : /^(https?:)[/\\]*.*@/is;
  return url.replace(rest, '$1//').replace(/[?#].*$/s, '');
}
