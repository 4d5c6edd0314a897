/** CORS options: allowed origins (as browsers send them in `Origin`), methods and headers. */
import { NotAllowed } from './units.js';

/** `*` allows every origin. */
export type AllowedOrigins = '*' | readonly string[];

/** Reads `*`, or one or more origins from a comma-separated text or an array. @throws NotAllowed */
export function parseOrigins(raw: unknown): AllowedOrigins {
  const given: readonly unknown[] = typeof raw === 'string' ? raw.split(',') : Array.isArray(raw) ? raw : [];
  const origins = given.map((one) => (typeof one === 'string' ? one.trim() : ''));
  if (origins.length === 1 && origins[0] === '*') return '*';
  if (origins.length === 0 || !origins.every(isOrigin)) throw new NotAllowed(ALLOWED);
  return origins;
}

const ALLOWED =
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
  const given: readonly unknown[] = typeof raw === 'string' ? raw.split(',') : Array.isArray(raw) ? raw : [];
  const words = given.map((one) => (typeof one === 'string' ? one.trim() : ''));
  if (words.length === 0 || !words.every((word) => TOKEN.test(word)))
    throw new NotAllowed(`names separated by commas, such as ${example}`);
  return words;
}

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
