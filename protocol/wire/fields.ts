/** Checks of the fields of a frame's head. A check returns the value of a field, or throws SERVE_PROTOCOL with its `name`. */
import { protocolError, type ServeError } from '../errors.js';

export type Check<T> = (value: unknown, name: string) => T;

/** The checks of a record's fields, by name; the compiler refuses a missing one. */
export type Checks<T> = { readonly [K in Exclude<keyof T, 'type'>]: Check<T[K]> };

function check<T>(what: string, isOne: (value: T) => boolean): Check<T> {
  return (value, name) => {
    if (isOne(value as T)) return value as T;
    throw malformed(`${name} is not ${what}`);
  };
}

export const text = check<string>('a string', (value) => typeof value === 'string');
export const flag = check<boolean>('a boolean', (value) => typeof value === 'boolean');
export const number = check<number>('a number', Number.isFinite);
export const numberOrNull = check<number | null>(
  'a number',
  (value) => value === null || Number.isFinite(value),
);
export const numberOrText = check<number | string>(
  'a number or a string',
  (value) => typeof value === 'string' || Number.isFinite(value),
);
export const fraction = check<number>(
  'between 0 and 1',
  (value) => Number.isFinite(value) && value >= 0 && value <= 1,
);
export const list = check<unknown[]>('a list', Array.isArray);

/** A map; not a list, binary or a timestamp. */
export const map = check<Record<string, unknown>>(
  'a map',
  (value) => typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype,
);

/** A whole number within these bounds. */
export function whole(min: number, max = Number.MAX_SAFE_INTEGER): Check<number> {
  return check(
    `a whole number from ${min} to ${max}`,
    (value) => Number.isSafeInteger(value) && value >= min && value <= max,
  );
}

export const uint = whole(0);
export const positive = whole(1);

/** The status of an error, 400 to 599; 0: the one that belongs to its code. */
export const errorStatus = check<number>(
  '0 or a status from 400 to 599',
  (value) => value === 0 || (Number.isSafeInteger(value) && value >= 400 && value <= 599),
);

export function oneOf<T extends string>(allowed: readonly T[]): Check<T> {
  return check(`one of ${allowed.join(', ')}`, (value) => allowed.includes(value));
}

/** A text; `otherwise` if this version does not know it. */
export function known<T extends string>(all: readonly T[], otherwise: T): Check<T> {
  return (value, name) => {
    const given = text(value, name) as T;
    return all.includes(given) ? given : otherwise;
  };
}

/** Returns `otherwise` for a field that is left out. */
export function orElse<T>(inner: Check<T>, otherwise: T): Check<T> {
  return (value, name) => (value === undefined ? otherwise : inner(value, name));
}

export function listOf<T>(item: Check<T>): Check<T[]> {
  return (value, name) => list(value, name).map((one, i) => item(one, `${name}[${i}]`));
}

/** A map with these keys; keys whose check returns undefined are left out. */
export function record<T extends object>(checks: Checks<T>): Check<T> {
  const entries = Object.entries<Check<unknown>>(checks);
  return (value, name) => {
    const given = map(value, name);
    const read = entries.map(([key, inner]) => [key, inner(given[key], `${name}.${key}`)] as const);
    return Object.fromEntries(read.filter(([, one]) => one !== undefined)) as T;
  };
}

/** Longest phrase of a status line, in characters. */
export const MAX_PHRASE_CHARS = 200;

/** Characters that HTTP allows in a phrase (RFC 9112 section 4), which Node writes as Latin-1. */
const PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Whether the text is allowed in a status line; empty means the standard phrase. */
export function isPhrase(value: string): boolean {
  return value.length <= MAX_PHRASE_CHARS && PHRASE.test(value);
}

export const phrase = check<string>(
  `a phrase for a status line: at most ${MAX_PHRASE_CHARS} characters of Latin-1, without control characters`,
  (value) => typeof value === 'string' && isPhrase(value),
);

/** Whether a program may close a WebSocket with this code (RFC 6455 section 7.4). */
export function isCloseCode(code: number): boolean {
  return code === 1000 || (Number.isInteger(code) && code >= 3000 && code <= 4999);
}

export const closeCode = check('1000 or a close code from 3000 to 4999', isCloseCode);

/** A text of at most so many bytes. */
export function textWithin(maxBytes: number): Check<string> {
  return check(
    `a string of at most ${maxBytes} bytes`,
    (value) => typeof value === 'string' && Buffer.byteLength(value) <= maxBytes,
  );
}

export function malformed(detail: string, cause?: unknown): ServeError {
  return protocolError(`malformed message: ${detail}`, cause);
}
