/**
 * Finds fields of a JSON object in the bytes of a body, for dialects that keep control fields there (a key, an id).
 *
 * 1. One pass over the bytes, a token at a time, with a pause after each slice, also inside a token. The open brackets are
 *    a stack of bits (`OpenBrackets`), so there is no limit on depth.
 * 2. Everything is checked, nested values too: a body is malformed exactly if JSON.parse refuses it after a byte order
 *    mark has been removed, as the worker does.
 * 3. Only the wanted fields are decoded, and only by `readString`, within a bound.
 *
 * The `skip…` functions return the position after what they skipped, or `~position` (negative) of an invalid byte. The model's
 * input stays bytes. bench/top-level-fields.ts compares the time with JSON.parse.
 */
import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { SLICE_BYTES, slicesOf } from './slices.js';

export interface ScannedBody {
  readonly is: 'object' | 'other JSON' | 'malformed';
  /** JSON of the wanted fields of an object, views of the body; of a repeated one the last, as with JSON.parse. */
  readonly fields: ReadonlyMap<string, Buffer>;
  /** The first invalid byte of a malformed body; the body's length if it ends too early, and if it is valid. */
  readonly at: number;
}

/** Scans a whole body at once, as `scanSlices` does. */
export function scanTopLevelFields(body: Buffer, wanted: readonly string[]): ScannedBody {
  return scanSlices(body, wanted, Infinity).next().value as ScannedBody;
}

/** Whether the whole body is JSON in UTF-8. */
export function* checkJson(body: Buffer): Generator<void, boolean> {
  for (const slice of slicesOf(body)) {
    if (!isUtf8(slice)) return false;
    yield;
  }
  return (yield* scanSlices(body, [])).is !== 'malformed';
}

/** Scans a body, and copies nothing. `wanted`: names in ASCII. A malformed body has the fields before its error. */
export function* scanSlices(
  body: Buffer,
  wanted: readonly string[],
  sliceBytes = SLICE_BYTES,
): Generator<void, ScannedBody> {
  for (const name of wanted) assert.match(name, /^[\x20-\x7e]*$/, 'wanted names are ASCII');
  const fields = new Map<string, Buffer>();
  const open = new OpenBrackets();
  let expected: Expected = 'value';
  let isObject = false;
  let name: string | null = null; // of the wanted top-level field whose value comes next
  let start = 0; // of that value
  let at = hasByteOrderMark(body) ? 3 : 0;
  for (let limit = Math.min(body.length, sliceBytes); ;) {
    at = skipSpace(body, at, limit);
    if (at === body.length) break;
    if (at >= limit) {
      yield;
      limit = Math.min(body.length, at + sliceBytes);
      continue;
    }
    const byte = body[at] as number;
    let end = at + 1;
    let next: Expected = 'comma or close';
    if (MAY_CLOSE.has(expected) && open.depth > 0 && byte === (open.inObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
      open.pop();
    } else if (expected === 'value' || expected === 'value or ]') {
      if (open.depth === 1) start = at;
      else if (open.depth === 0) isObject = byte === OPEN_BRACE;
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        open.push(byte === OPEN_BRACE);
        next = open.inObject ? 'key or }' : 'value or ]';
      } else if ((end = skipPlain(body, at, limit)) >= limit) end = yield* skipLong(body, at, sliceBytes);
    } else if (byte === QUOTE && expected.startsWith('key')) {
      if ((end = skipPlain(body, at, limit)) >= limit) end = yield* skipLong(body, at, sliceBytes);
      if (end >= 0 && open.depth === 1) name = nameIn(wanted, body, at + 1, end - 1);
      next = 'colon';
    } else if (byte === COLON && expected === 'colon') next = 'value';
    else if (byte === COMMA && expected === 'comma or close' && open.depth > 0)
      next = open.inObject ? 'key' : 'value';
    else end = ~at;
    if (end < 0) return { is: 'malformed', fields, at: ~end };
    at = end;
    expected = next;
    if (name !== null && open.depth === 1 && next === 'comma or close')
      fields.set(name, body.subarray(start, end));
  }
  if (expected !== 'comma or close' || open.depth > 0) return { is: 'malformed', fields, at };
  return { is: isObject ? 'object' : 'other JSON', fields, at };
}

/** The next token that is allowed. */
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or close';

const MAY_CLOSE: ReadonlySet<Expected> = new Set(['value or ]', 'key or }', 'comma or close']);

/** Skips a value that is neither an object nor an array. Returns `limit` or more if its end does not lie before. */
function skipPlain(body: Buffer, at: number, limit: number): number {
  switch (body[at]) {
    case QUOTE: {
      const end = skipText(body, at + 1, limit);
      return end < 0 || end >= limit ? end : end + 1;
    }
    case TRUE[0]:
      return skipWord(body, at, TRUE);
    case FALSE[0]:
      return skipWord(body, at, FALSE);
    case NULL[0]:
      return skipWord(body, at, NULL);
    default:
      return skipNumber(body, at, limit);
  }
}

function skipNumber(body: Buffer, from: number, limit: number): number {
  let at = body[from] === MINUS ? from + 1 : from;
  at = body[at] === ZERO ? at + 1 : skipDigits(body, at, limit);
  if (body[at] === POINT) at = skipDigits(body, at + 1, limit);
  return isExponent(body[at]) ? skipDigits(body, afterSign(body, at + 1), limit) : at;
}

/** Does the same, slice by slice, with a value that does not end in its slice. */
function* skipLong(body: Buffer, from: number, sliceBytes: number): Generator<void, number> {
  if (body[from] === QUOTE) {
    const end = yield* skipOn(skipText, body, from + 1, sliceBytes);
    if (end < 0) return end;
    return end === body.length ? ~end : end + 1;
  }
  if (body[from] !== MINUS && !isDigit(body[from])) return skipPlain(body, from, body.length);
  let at = body[from] === MINUS ? from + 1 : from;
  at = body[at] === ZERO ? at + 1 : yield* skipOn(skipDigits, body, at, sliceBytes);
  if (body[at] === POINT) at = yield* skipOn(skipDigits, body, at + 1, sliceBytes);
  return isExponent(body[at]) ? yield* skipOn(skipDigits, body, afterSign(body, at + 1), sliceBytes) : at;
}

/** Skips slice by slice. `skip` stops at its limit, or a few bytes after it. */
function* skipOn(
  skip: (body: Buffer, at: number, limit: number) => number,
  body: Buffer,
  from: number,
  sliceBytes: number,
): Generator<void, number> {
  for (let at = from; ; yield) {
    const limit = Math.min(body.length, at + sliceBytes);
    at = skip(body, at, limit);
    if (at < limit || limit === body.length) return at;
  }
}

/** Returns the text of a scanned field; null if it is not a string or is longer than `maxBytes` as written, with its escapes. */
export function readString(json: Buffer, maxBytes: number): string | null {
  if (json[0] !== QUOTE || json.length - 2 > maxBytes) return null;
  return JSON.parse(json.toString()) as string;
}

/**
 * The stack of open brackets, outermost first: one bit for each, so that a body of nothing but brackets costs an eighth
 * of its size.
 */
class OpenBrackets {
  depth = 0;
  /** Whether the innermost bracket is that of an object. */
  inObject = false;
  #bits = new Uint8Array(32);

  push(isObject: boolean): void {
    const byte = this.depth >>> 3;
    if (byte === this.#bits.length) {
      const twice = new Uint8Array(2 * byte);
      twice.set(this.#bits);
      this.#bits = twice;
    }
    const bit = 1 << (this.depth & 7);
    this.#bits[byte] = isObject ? (this.#bits[byte] as number) | bit : (this.#bits[byte] as number) & ~bit;
    this.depth += 1;
    this.inObject = isObject;
  }

  pop(): void {
    this.depth -= 1;
    const outer = this.depth - 1;
    this.inObject = outer >= 0 && ((this.#bits[outer >>> 3] as number) & (1 << (outer & 7))) !== 0;
  }
}

function skipSpace(body: Buffer, at: number, limit: number): number {
  while (at < limit) {
    const byte = body[at] as number;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at;
    at += 1;
  }
  return at;
}

/** Skips a string's content, up to its closing quote. */
function skipText(body: Buffer, at: number, limit: number): number {
  while (at >= 0) {
    while (at < limit && ENDS_TEXT[body[at] as number] === 0) at += 1; // a table: three comparisons take 1.5 times as long
    if (at >= limit || body[at] === QUOTE) return at;
    at = body[at] === BACKSLASH ? skipEscape(body, at) : ~at;
  }
  return at;
}

function skipEscape(body: Buffer, backslashAt: number): number {
  const at = backslashAt + 1;
  if (at >= body.length) return ~at;
  const letter = body[at] as number;
  if (letter !== LETTER_U) return UNESCAPED[letter] === undefined ? ~at : at + 1;
  for (let digit = at + 1; digit < at + 5; digit += 1)
    if (digit >= body.length || hexValue(body[digit] as number) < 0) return ~digit;
  return at + 5;
}

function skipWord(body: Buffer, at: number, word: Buffer): number {
  for (let i = 0; i < word.length; i += 1) if (body[at + i] !== word[i]) return ~(at + i);
  return at + word.length;
}

/** Skips at least one digit; none if a slice begins right behind the last one. */
function skipDigits(body: Buffer, from: number, limit: number): number {
  if (!isDigit(body[from]) && !isDigit(body[from - 1])) return ~from;
  let at = from;
  while (at < limit && isDigit(body[at])) at += 1;
  return at;
}

function isExponent(byte: number | undefined): boolean {
  return byte === LETTER_E || byte === CAPITAL_E;
}

function afterSign(body: Buffer, at: number): number {
  return body[at] === MINUS || body[at] === PLUS ? at + 1 : at;
}

/**
 * Returns the name that equals the key between its quotes, as JSON.parse reads it: `"\u0061piKey"` is apiKey. Null if
 * there is none.
 */
function nameIn(names: readonly string[], body: Buffer, start: number, end: number): string | null {
  for (const name of names) if (isKey(name, body, start, end)) return name;
  return null;
}

/** Byte by byte, without a copy: a body may hold millions of keys. */
function isKey(name: string, body: Buffer, start: number, end: number): boolean {
  let at = start;
  for (let i = 0; i < name.length; i += 1) {
    if (at === end) return false;
    let unit = body[at] as number;
    if (unit === BACKSLASH) {
      const letter = body[at + 1] as number;
      unit = letter === LETTER_U ? codeUnit(body, at + 2) : (UNESCAPED[letter] as number);
      at += letter === LETTER_U ? 6 : 2;
    } else {
      at += 1;
    }
    if (unit !== name.charCodeAt(i)) return false;
  }
  return at === end;
}

function codeUnit(body: Buffer, at: number): number {
  let unit = 0;
  for (let i = at; i < at + 4; i += 1) unit = unit * 16 + hexValue(body[i] as number);
  return unit;
}

function hexValue(byte: number): number {
  if (isDigit(byte)) return byte - ZERO;
  const letter = byte | 0x20; // lower case
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}

function hasByteOrderMark(body: Buffer): boolean {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
}

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const CAPITAL_E = 0x45;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LETTER_E = 0x65;
const LETTER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

/** 1 for the bytes at which plain text in a string stops: control characters, the quote, the backslash. */
const ENDS_TEXT = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 1 : 0,
);

/** Characters by the letter that follows the backslash in their escape. */
const UNESCAPED: Readonly<Partial<Record<number, number>>> = Object.fromEntries(
  Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(
    ([letter, stands]) => [letter.charCodeAt(0), stands.charCodeAt(0)],
  ),
);
