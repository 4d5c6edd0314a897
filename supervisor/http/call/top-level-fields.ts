/**
 * Finds fields of a JSON object in the bytes of a body, for a dialect that hides control fields in it (a key, an id).
 *
 * 1. One pass over the bytes, a token at a time, or in steps that may end anywhere; which brackets are open is a stack of bits, so no depth is too deep.
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

/** What the next token may be, or which token goes on. */
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or close' | Unfinished;
type Unfinished = 'rest of a key' | 'rest of a string' | NumberPart;

/** Which digits come next in a number, if any do. */
type NumberPart = 'nothing after 0' | 'whole digits' | 'decimals' | 'digits of the exponent';

/** `wanted`: names in ASCII. Copies nothing; blocks for as long as reading the body's bytes takes. */
export function scanTopLevelFields(body: Buffer, wanted: readonly string[]): ScannedBody {
  return new TopLevelScan(body, wanted).step(body.length) as ScannedBody;
}

/** The same in steps, for bodies that are too large to be read in one go: others are served in between. */
export class TopLevelScan {
  readonly #body: Buffer;
  readonly #wanted: readonly string[];
  readonly #fields = new Map<string, ByteRange>();
  readonly #open = new OpenBrackets();
  #at: number;
  #expected: Expected = 'value';
  #isObject = false;
  /** The top-level field whose value comes, if it is wanted. */
  #name: string | null = null;
  /** The first byte of that value. */
  #start = 0;
  #keyStart = 0;

  constructor(body: Buffer, wanted: readonly string[]) {
    for (const name of wanted) assert.match(name, /^[\x20-\x7e]*$/, 'wanted names are ASCII');
    this.#body = body;
    this.#wanted = wanted;
    this.#at = hasByteOrderMark(body) ? 3 : 0;
  }

  /** Reads on, at most a few bytes more than `maxBytes`; null if that was not all. Once it was, ask no more. */
  step(maxBytes: number): ScannedBody | null {
    const body = this.#body;
    const limit = Math.min(body.length, this.#at + maxBytes);
    for (let goesOn = UNFINISHED.has(this.#expected); ; goesOn = false) {
      if (!goesOn) this.#at = skipSpace(body, this.#at, limit);
      const mistakeAt = this.#at < limit ? this.#readToken(limit) : -1;
      if (mistakeAt >= 0) return { is: 'malformed', at: mistakeAt };
      if (this.#at < limit) continue;
      return limit < body.length ? null : this.#atEnd();
    }
  }

  #atEnd(): ScannedBody {
    const { length } = this.#body;
    if (NUMBER_PARTS.has(this.#expected)) this.#endValue(length);
    if (this.#expected !== 'comma or close' || this.#open.depth > 0) return { is: 'malformed', at: length };
    return this.#isObject ? { is: 'object', fields: this.#fields } : { is: 'other' };
  }

  /** Takes one token, or as much of it as comes before `limit`. Returns the place of a wrong byte, or -1. */
  #readToken(limit: number): number {
    const at = this.#at;
    const byte = this.#body[at] as number;
    switch (this.#expected) {
      case 'value or ]':
        return byte === CLOSE_BRACKET ? this.#close(at, byte) : this.#beginValue(at, byte, limit);
      case 'value':
        return this.#beginValue(at, byte, limit);
      case 'key or }':
      case 'key':
        if (byte === CLOSE_BRACE && this.#expected === 'key or }') return this.#close(at, byte);
        if (byte !== QUOTE) return at;
        this.#keyStart = at + 1;
        return this.#readText(at + 1, limit, 'rest of a key');
      case 'colon':
        if (byte !== COLON) return at;
        return this.#goOn(at + 1, 'value');
      case 'comma or close':
        if (byte !== COMMA || this.#open.depth === 0) return this.#close(at, byte);
        return this.#goOn(at + 1, this.#open.inObject ? 'key' : 'value');
      case 'rest of a key':
      case 'rest of a string':
        return this.#readText(at, limit, this.#expected);
      default:
        return this.#readNumber(at, limit, this.#expected);
    }
  }

  #beginValue(at: number, byte: number, limit: number): number {
    const { depth } = this.#open;
    if (depth === 1) this.#start = at;
    else if (depth === 0) this.#isObject = byte === OPEN_BRACE;
    switch (byte) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        this.#open.push(byte === OPEN_BRACE);
        return this.#goOn(at + 1, byte === OPEN_BRACE ? 'key or }' : 'value or ]');
      case QUOTE:
        return this.#readText(at + 1, limit, 'rest of a string');
      case TRUE[0]:
        return this.#endValue(skipWord(this.#body, at, TRUE));
      case FALSE[0]:
        return this.#endValue(skipWord(this.#body, at, FALSE));
      case NULL[0]:
        return this.#endValue(skipWord(this.#body, at, NULL));
      default:
        return this.#beginNumber(byte === MINUS ? at + 1 : at, limit);
    }
  }

  /** Nothing but the bracket that closes the innermost one may stand at `at`. */
  #close(at: number, byte: number): number {
    const open = this.#open;
    if (open.depth === 0 || byte !== (open.inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return at;
    open.pop();
    return this.#endValue(at + 1);
  }

  /** `end`: the byte after the value, or `~place` of one that is wrong. */
  #endValue(end: number): number {
    if (end < 0) return ~end;
    if (this.#name !== null && this.#open.depth === 1)
      this.#fields.set(this.#name, { start: this.#start, end });
    return this.#goOn(end, 'comma or close');
  }

  #goOn(at: number, expected: Expected): number {
    this.#at = at;
    this.#expected = expected;
    return -1;
  }

  /** From a place inside a string. */
  #readText(from: number, limit: number, rest: 'rest of a key' | 'rest of a string'): number {
    const at = skipText(this.#body, from, limit);
    if (at < 0) return ~at;
    if (at >= limit) return this.#goOn(at, rest);
    if (rest === 'rest of a string') return this.#endValue(at + 1);
    if (this.#open.depth === 1) this.#name = nameIn(this.#wanted, this.#body, this.#keyStart, at);
    return this.#goOn(at + 1, 'colon');
  }

  #beginNumber(at: number, limit: number): number {
    const first = this.#body[at];
    if (first === ZERO) return this.#readNumber(at + 1, limit, 'nothing after 0');
    return isDigit(first) ? this.#readNumber(at, limit, 'whole digits') : at;
  }

  /** From a place between its digits, or behind them. */
  #readNumber(from: number, limit: number, part: NumberPart): number {
    const body = this.#body;
    const at = part === 'nothing after 0' ? from : skipDigits(body, from, limit);
    if (at >= limit) return this.#goOn(at, part);
    const byte = body[at];
    const isWhole = part === 'whole digits' || part === 'nothing after 0';
    if (byte === POINT && isWhole) return this.#beginDigits(at + 1, limit, 'decimals');
    if ((byte !== LETTER_E && byte !== CAPITAL_E) || part === 'digits of the exponent')
      return this.#endValue(at);
    const isSigned = body[at + 1] === MINUS || body[at + 1] === PLUS;
    return this.#beginDigits(isSigned ? at + 2 : at + 1, limit, 'digits of the exponent');
  }

  /** There must be one at least. */
  #beginDigits(at: number, limit: number, part: NumberPart): number {
    return isDigit(this.#body[at]) ? this.#readNumber(at, limit, part) : at;
  }
}

const NUMBER_PARTS: ReadonlySet<Expected> = new Set<NumberPart>([
  'nothing after 0',
  'whole digits',
  'decimals',
  'digits of the exponent',
]);
const UNFINISHED: ReadonlySet<Expected> = new Set([...NUMBER_PARTS, 'rest of a key', 'rest of a string']);

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
 * The skippers return the place behind what they skipped, or `~place` (negative) of the byte that is wrong. Those with a
 * `limit` stop there, or a few bytes behind it.
 */

function skipSpace(body: Buffer, at: number, limit: number): number {
  while (at < limit) {
    const byte = body[at] as number;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at;
    at += 1;
  }
  return at;
}

/** What comes before a string's closing quote. */
function skipText(body: Buffer, at: number, limit: number): number {
  while (at >= 0) {
    while (at < limit && ENDS_TEXT[body[at] as number] === 0) at += 1; // a table: with three comparisons it takes 1.5 times as long
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

function skipDigits(body: Buffer, at: number, limit: number): number {
  while (at < limit && isDigit(body[at])) at += 1;
  return at;
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

/** What a letter after a backslash stands for. */
const UNESCAPED: Readonly<Partial<Record<number, number>>> = Object.fromEntries(
  Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(
    ([letter, stands]) => [letter.charCodeAt(0), stands.charCodeAt(0)],
  ),
);
