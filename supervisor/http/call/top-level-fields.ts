/**
 * Finds fields of a JSON object in the bytes of a body, for a dialect that hides control fields in it (a key, an id).
 *
 * 1. One pass over the bytes, a token at a time; which brackets are open is a stack of bits, so no depth is too deep.
 * 2. Everything is checked, nested values too: malformed here is exactly what JSON.parse refuses once a byte order
 *    mark is taken off, as the worker does.
 * 3. Nothing is decoded but the wanted fields, and those only by `readString` and `readBoolean`, within a bound.
 *
 * The model's part stays bytes. bench/top-level-fields.ts times it beside JSON.parse.
 */
import assert from 'node:assert/strict';

/** Of a value in the body: its first byte, and the one after its last. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export type ScannedBody =
  /** The wanted fields that are there; of a repeated one the last, as with JSON.parse. */
  | { readonly is: 'object'; readonly fields: ReadonlyMap<string, ByteRange> }
  /** Another JSON value. */
  | { readonly is: 'other' }
  /** `at`: the first byte that cannot stand there; the body's length if it ends too early. */
  | { readonly is: 'malformed'; readonly at: number };

/** What the next token may be. */
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or close';

/** `wanted`: names in ASCII. Copies nothing; blocks for as long as reading the body's bytes takes. */
export function scanTopLevelFields(body: Buffer, wanted: readonly string[]): ScannedBody {
  for (const name of wanted) assert.match(name, /^[\x20-\x7e]*$/, 'wanted names are ASCII');
  const fields = new Map<string, ByteRange>();
  const open = new OpenBrackets();
  const first = skipSpace(body, hasByteOrderMark(body) ? 3 : 0);
  let expected: Expected = 'value';
  let name: string | null = null; // of the top-level field whose value comes, if it is wanted
  let start = 0; // of that value
  let at = first;

  for (; ; at = skipSpace(body, at)) {
    if (at === body.length) {
      if (expected !== 'comma or close' || open.depth > 0) return { is: 'malformed', at };
      return body[first] === OPEN_BRACE ? { is: 'object', fields } : { is: 'other' };
    }
    const byte = body[at] as number;
    switch (expected) {
      case 'value or ]':
      case 'value':
        if (byte === CLOSE_BRACKET && expected === 'value or ]') break;
        if (open.depth === 1) start = at;
        if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
          open.push(byte === OPEN_BRACE);
          expected = byte === OPEN_BRACE ? 'key or }' : 'value or ]';
          at += 1;
          continue;
        }
        at = skipScalar(body, at, byte);
        if (at < 0) return { is: 'malformed', at: ~at };
        if (name !== null && open.depth === 1) fields.set(name, { start, end: at });
        expected = 'comma or close';
        continue;
      case 'key or }':
      case 'key': {
        if (byte === CLOSE_BRACE && expected === 'key or }') break;
        const end = byte === QUOTE ? skipString(body, at) : ~at;
        if (end < 0) return { is: 'malformed', at: ~end };
        if (open.depth === 1) name = nameIn(wanted, body, at + 1, end - 1);
        expected = 'colon';
        at = end;
        continue;
      }
      case 'colon':
        if (byte !== COLON) return { is: 'malformed', at };
        expected = 'value';
        at += 1;
        continue;
      case 'comma or close':
        if (byte !== COMMA || open.depth === 0) break;
        expected = open.inObject ? 'key' : 'value';
        at += 1;
        continue;
    }
    // Nothing but a closing bracket may stand here.
    if (open.depth === 0 || byte !== (open.inObject ? CLOSE_BRACE : CLOSE_BRACKET))
      return { is: 'malformed', at };
    open.pop();
    at += 1;
    if (name !== null && open.depth === 1) fields.set(name, { start, end: at });
    expected = 'comma or close';
  }
}

/** The text of a scanned value; null if it is no string or is longer than `maxBytes` as written, escapes and all. */
export function readString(body: Buffer, { start, end }: ByteRange, maxBytes: number): string | null {
  if (body[start] !== QUOTE || end - start - 2 > maxBytes) return null;
  return JSON.parse(body.toString('utf8', start, end)) as string;
}

/** A scanned value that is `true` or `false`; null if it is anything else. */
export function readBoolean(body: Buffer, { start, end }: ByteRange): boolean | null {
  if (end - start === 4 && body[start] === TRUE[0]) return true;
  return end - start === 5 && body[start] === FALSE[0] ? false : null;
}

/** Which brackets are open, outermost first: a bit for each, so that a body of nothing else costs an eighth of its size. */
class OpenBrackets {
  depth = 0;
  /** Of the innermost. */
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

/*
 * The skippers take the place of a token's first byte and return that of the byte after it, or `~place` (negative)
 * of the byte that is wrong.
 */

function skipSpace(body: Buffer, at: number): number {
  while (at < body.length) {
    const byte = body[at] as number;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at;
    at += 1;
  }
  return at;
}

function skipString(body: Buffer, quoteAt: number): number {
  const { length } = body;
  let at = quoteAt + 1;
  while (at >= 0) {
    while (at < length && ENDS_TEXT[body[at] as number] === 0) at += 1; // a table: with three comparisons it takes 1.5 times as long
    if (at === length) return ~at;
    if (body[at] === QUOTE) return at + 1;
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

/** A value that is no object and no array. */
function skipScalar(body: Buffer, at: number, first: number): number {
  switch (first) {
    case QUOTE:
      return skipString(body, at);
    case TRUE[0]:
      return skipWord(body, at, TRUE);
    case FALSE[0]:
      return skipWord(body, at, FALSE);
    case NULL[0]:
      return skipWord(body, at, NULL);
    default:
      return skipNumber(body, at);
  }
}

function skipWord(body: Buffer, at: number, word: Buffer): number {
  for (let i = 0; i < word.length; i += 1) if (body[at + i] !== word[i]) return ~(at + i);
  return at + word.length;
}

function skipNumber(body: Buffer, start: number): number {
  let at = body[start] === MINUS ? start + 1 : start;
  if (body[at] === ZERO) at += 1;
  else if ((at = skipDigits(body, at)) < 0) return at;
  if (body[at] === POINT && (at = skipDigits(body, at + 1)) < 0) return at;
  if (body[at] === LETTER_E || body[at] === CAPITAL_E) {
    at += 1;
    if (body[at] === MINUS || body[at] === PLUS) at += 1;
    return skipDigits(body, at);
  }
  return at;
}

/** At least one. */
function skipDigits(body: Buffer, start: number): number {
  let at = start;
  while (at < body.length && isDigit(body[at] as number)) at += 1;
  return at === start ? ~at : at;
}

/** Which of the names the key between its quotes is, as JSON.parse reads it: `"\u0061piKey"` is apiKey. */
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

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= ZERO + 9;
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

/** What a letter after a backslash stands for. */
const UNESCAPED: Readonly<Partial<Record<number, number>>> = Object.fromEntries(
  Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(
    ([letter, stands]) => [letter.charCodeAt(0), stands.charCodeAt(0)],
  ),
);
