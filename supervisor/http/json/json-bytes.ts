/**
 * Reads JSON as bytes, one token at a time: whitespace, strings, words, digits, and the names of keys.
 * The `skip…` functions return the position after what they skipped, or `~position` (negative) of an invalid byte.
 * Those with a `limit` stop there, or a few bytes after it.
 */

export function skipSpace(body: Buffer, at: number, limit: number): number {
  while (at < limit) {
    const byte = body[at] as number;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at;
    at += 1;
  }
  return at;
}

/** Skips a string's content, up to its closing quote. */
export function skipText(body: Buffer, at: number, limit: number): number {
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

export function skipWord(body: Buffer, at: number, word: Buffer): number {
  for (let i = 0; i < word.length; i += 1) if (body[at + i] !== word[i]) return ~(at + i);
  return at + word.length;
}

export function skipDigits(body: Buffer, at: number, limit: number): number {
  while (at < limit && isDigit(body[at])) at += 1;
  return at;
}

/**
 * Returns the name that equals the key between its quotes, as JSON.parse reads it: `"\u0061piKey"` is apiKey. Null if
 * there is none.
 */
export function nameIn(names: readonly string[], body: Buffer, start: number, end: number): string | null {
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

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}

export function hasByteOrderMark(body: Buffer): boolean {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
}

export const QUOTE = 0x22;
export const PLUS = 0x2b;
export const COMMA = 0x2c;
export const MINUS = 0x2d;
export const POINT = 0x2e;
export const ZERO = 0x30;
export const COLON = 0x3a;
export const CAPITAL_E = 0x45;
export const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const LETTER_E = 0x65;
const LETTER_U = 0x75;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const TRUE = Buffer.from('true');
export const FALSE = Buffer.from('false');
export const NULL = Buffer.from('null');

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
