/**
 * The web addresses that models may be downloaded from, as an operator writes them: beginnings of addresses, compared after
 * both were read as a browser reads them. Never a pattern: what looks like one allows more than its author meant, or, read
 * as text, nothing.
 */
import { NotAllowed } from './units.js';

/** The beginning of the addresses that are allowed. */
export interface UrlEntry {
  /** `http:` or `https:`; the other one does not match. */
  readonly protocol: string;
  /** In lower case, whole: no other host matches, not one that ends like it either. */
  readonly hostname: string;
  /** Empty: the scheme's own. Null: any. */
  readonly port: string | null;
  /** The path must begin so. */
  readonly path: string;
}

export interface AllowedUrls {
  readonly entries: readonly UrlEntry[];
  /** What was given and allows nothing, and why. */
  readonly unusable: readonly string[];
}

export const NO_URLS: AllowedUrls = { entries: [], unusable: [] };

/** Entries by commas, or an array of them. What cannot be used is kept aside. @throws NotAllowed if it is no text */
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

/** Whether one of the entries allows this address; one with a user or a password is allowed by none. */
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

/** Some servers read an encoded slash as a slash: a path that would lead upwards for them is under no other path. */
function mayClimb(pathname: string): boolean {
  const read = pathname.replace(/%(?:25)*2e/gi, '.').replace(/%(?:25)*(?:2f|5c)|\\/gi, '/');
  return read.split('/').includes('..');
}

/** Returns what is wrong with it if it cannot be used. */
function parseEntry(text: string): UrlEntry | string {
  const [, authority, rest] = /^https?:\/\/([^/?#\\]*)(.*)$/is.exec(text) ?? [];
  if (authority === undefined || rest === undefined)
    return 'begin it with https://, or with http:// for what needs no protection on its way';
  if (authority.includes('@')) return 'leave out the user and the password, which no address may have';
  if (PATTERN.test(rest) || PATTERN.test(authority.replace(/^\[[\da-f:.]+\]/i, ''))) return IS_PATTERN;
  if (!URL.canParse(text)) return 'it is no URL';
  const { protocol, hostname, port, pathname } = new URL(text);
  return { protocol, hostname, port: authority.endsWith(':') ? null : port, path: pathname };
}

/** Signs of a regular expression, or of a query, which is not compared. */
const PATTERN = /[*+?|^$()[\]{}\\#\s]/;

const IS_PATTERN =
  'it is read as the beginning of an address, and not as a pattern; name each host, such as https://models.example.com/zoo/';

/** A web address as others may see it: without a user, a password, a query and a fragment, where secrets stand. */
export function withoutSecrets(url: string): string {
  const rest = URL.canParse(url) ? /^(https?:)[/\\]*[^/?#\\]*@/i : /^(https?:)[/\\]*.*@/is;
  return url.replace(rest, '$1//').replace(/[?#].*$/s, '');
}
