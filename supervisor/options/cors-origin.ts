/** What pages of other origins may do: which may call, as browsers write them in `Origin`, by which methods, with which headers. */
import { NotAllowed } from './units.js';

/** `*`: every page. */
export type AllowedOrigins = '*' | readonly string[];

/** `*`, or one origin or several, as a text with commas or an array. @throws NotAllowed */
export function parseOrigins(raw: unknown): AllowedOrigins {
  const given: readonly unknown[] = typeof raw === 'string' ? raw.split(',') : Array.isArray(raw) ? raw : [];
  const origins = given.map((one) => (typeof one === 'string' ? one.trim() : ''));
  if (origins.length === 1 && origins[0] === '*') return '*';
  if (origins.length === 0 || !origins.every(isOrigin)) throw new NotAllowed(ALLOWED);
  return origins;
}

const ALLOWED =
  '* for every page, or origins as browsers write them, separated by commas: https://app.example.com, no path, no slash at the end';

/** Compared to the letter with what a browser sends, so one that no browser sends is a mistake. */
function isOrigin(text: string): boolean {
  if (/^https?:/i.test(text))
    return !text.includes('*') && URL.canParse(text) && new URL(text).origin === text;
  return OTHER_SCHEME.test(text);
}

/** The origin of an app's web view, or of a browser's extension. */
const OTHER_SCHEME = /^[a-z][a-z\d+.-]*:\/\/[a-z\d.-]+(?::\d+)?$/;

/** Words of a header's value, such as methods or names of headers, as a text with commas or an array. @throws NotAllowed */
export function parseTokens(raw: unknown, example: string): readonly string[] {
  const given: readonly unknown[] = typeof raw === 'string' ? raw.split(',') : Array.isArray(raw) ? raw : [];
  const words = given.map((one) => (typeof one === 'string' ? one.trim() : ''));
  if (words.length === 0 || !words.every((word) => TOKEN.test(word)))
    throw new NotAllowed(`names separated by commas, such as ${example}`);
  return words;
}

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
