/** Checks of the fields of a frame's head. A check returns the value of a field, or throws SERVE_PROTOCOL with its `name`. */
import { protocolError, type ServeError } from '../errors.js';

export type Check<T> = (value: unknown, name: string) => T;

/** The checks of a record's fields, by name. */
export type Checks = Readonly<Record<string, Check<unknown>>>;

/** The record that these checks let pass; a field that may be undefined may be left out. */
export type Checked<C extends Checks> = {
  readonly [K in keyof C as undefined extends ReturnType<C[K]> ? never : K]: ReturnType<C[K]>;
} & {
  readonly [K in keyof C as undefined extends ReturnType<C[K]> ? K : never]?: Exclude<
    ReturnType<C[K]>,
    undefined
  >;
};

function check<T>(what: string, isOne: (value: T) => boolean): Check<T> {
  return (value, name) => {
    if (isOne(value as T)) return value as T;
    throw malformed(`${name} is not ${what}`);
  };
}

/** Written out, as `flag` and `uint` are: they check nearly every field of a call, and V8 inlines them (bench/codec.ts). */
export function text(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  throw malformed(`${name} is not a string`);
}

export function flag(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value;
  throw malformed(`${name} is not a boolean`);
}

export function uint(value: unknown, name: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw malformed(`${name} is not a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);
}

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

export function optional<T>(inner: Check<T>): Check<T | undefined> {
  return orElse<T | undefined>(inner, undefined);
}

export function listOf<T>(item: Check<T>): Check<readonly T[]> {
  return (value, name) => list(value, name).map((one, i) => item(one, `${name}[${i}]`));
}

/** A record that is sent as a map. */
export function record<C extends Checks>(checks: C): Check<Checked<C>> {
  const entries = Object.entries(checks);
  return (value, name) => {
    const given = map(value, name);
    const read = entries.map(([key, inner]) => [key, inner(given[key], `${name}.${key}`)] as const);
    return Object.fromEntries(read.filter(([, one]) => one !== undefined)) as Checked<C>;
  };
}

/** The fields of a record that is sent as an array, in its order. */
export type Layout = readonly (readonly [name: string, check: Check<unknown>])[];

/** A record that is sent as an array. */
export function row<C extends Checks>(checks: C): Check<Checked<C>> & { readonly layout: Layout } {
  const layout = Object.entries(checks);
  const read: Check<Checked<C>> = (value, name) => readRow(layout, list(value, name), 0, {}) as Checked<C>;
  return Object.assign(read, { layout });
}

/** Adds the fields of a row, which begins at `from`, to `into`; what is left out stays out. */
export function readRow(
  layout: Layout,
  values: readonly unknown[],
  from: number,
  into: Record<string, unknown>,
): object {
  for (let i = 0; i < layout.length; i += 1) {
    const [name, inner] = layout[i] as Layout[number];
    const value = inner(values[from + i], name);
    if (value !== undefined) into[name] = value;
  }
  return into;
}

/** Adds the fields of a record to a row. */
export function writeRow(layout: Layout, source: object, into: unknown[]): unknown[] {
  for (const [name] of layout) into.push((source as Record<string, unknown>)[name]);
  return into;
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
