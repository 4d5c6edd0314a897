/**
 * Finds fields of a JSON object in the bytes of a body, for dialects that keep control fields there (a key, an id).
 *
 * 1. One pass over the bytes, a token at a time (`json-bytes.ts`), or in steps that may end anywhere. The open brackets
 *    are a stack of bits (`OpenBrackets`), so there is no limit on depth.
 * 2. Everything is checked, nested values too: a body is malformed exactly if JSON.parse refuses it after a byte order
 *    mark has been removed, as the worker does.
 * 3. Only the wanted fields are decoded, and only by `readString` and `readBoolean`, within a bound.
 *
 * The model's input stays bytes. bench/top-level-fields.ts compares the time with JSON.parse.
 */
import assert from 'node:assert/strict';
import {
  QUOTE,
  PLUS,
  COMMA,
  MINUS,
  POINT,
  ZERO,
  COLON,
  CAPITAL_E,
  OPEN_BRACKET,
  CLOSE_BRACKET,
  LETTER_E,
  OPEN_BRACE,
  CLOSE_BRACE,
  TRUE,
  FALSE,
  NULL,
  skipSpace,
  skipText,
  skipWord,
  skipDigits,
  nameIn,
  isDigit,
  hasByteOrderMark,
} from './json-bytes.js';

/** The place of a value in the body: its first byte, and the one after its last. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export type ScannedBody =
  /** The wanted fields that are present; of a repeated one the last, as with JSON.parse. */
  | { readonly is: 'object'; readonly fields: ReadonlyMap<string, ByteRange> }
  /** Another JSON value. */
  | { readonly is: 'other' }
  /** `at`: the first invalid byte; the body's length if it ends too early. */
  | { readonly is: 'malformed'; readonly at: number };

/** The next token that is allowed, or the token that is unfinished. */
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or close' | Unfinished;
type Unfinished = 'rest of a key' | 'rest of a string' | NumberPart;

/** The unfinished part of a number. */
type NumberPart = 'nothing after 0' | 'whole digits' | 'decimals' | 'digits of the exponent';

/** Scans a whole body. `wanted`: names in ASCII. Copies nothing; blocks for as long as reading the bytes takes. */
export function scanTopLevelFields(body: Buffer, wanted: readonly string[]): ScannedBody {
  return new TopLevelScan(body, wanted).step(body.length) as ScannedBody;
}

/** The same scan in steps, for bodies that are too large for one: other requests are served in between. */
export class TopLevelScan {
  readonly #body: Buffer;
  readonly #wanted: readonly string[];
  readonly #fields = new Map<string, ByteRange>();
  readonly #open = new OpenBrackets();
  #at: number;
  #expected: Expected = 'value';
  #isObject = false;
  /** The wanted top-level field whose value comes next; null if the field is not wanted. */
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

  /** The wanted fields whose values are complete so far. */
  get fields(): ReadonlyMap<string, ByteRange> {
    return this.#fields;
  }

  /**
   * Reads at most a few bytes more than `maxBytes`. Null if there is more to read; after another result, do not call it
   * again.
   */
  step(maxBytes: number): ScannedBody | null {
    const body = this.#body;
    const limit = Math.min(body.length, this.#at + maxBytes);
    for (let goesOn = UNFINISHED.has(this.#expected); ; goesOn = false) {
      if (!goesOn) this.#at = skipSpace(body, this.#at, limit);
      const invalidAt = this.#at < limit ? this.#readToken(limit) : -1;
      if (invalidAt >= 0) return { is: 'malformed', at: invalidAt };
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

  /** Reads one token, or the part of it before `limit`. Returns the position of an invalid byte, or -1. */
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

  /** `end`: the byte after the value, or `~position` of an invalid byte. */
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

  /** Continues at a position inside a string. */
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

  /** Continues at a position between or after the digits of a number. */
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

  /** Reads at least one digit. */
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

/**
 * Returns the text of a scanned value; null if it is not a string or is longer than `maxBytes` as written, with its
 * escapes.
 */
export function readString(body: Buffer, { start, end }: ByteRange, maxBytes: number): string | null {
  if (body[start] !== QUOTE || end - start - 2 > maxBytes) return null;
  return JSON.parse(body.toString('utf8', start, end)) as string;
}

/** Returns a scanned value that is `true` or `false`; null if it is anything else. */
export function readBoolean(body: Buffer, { start, end }: ByteRange): boolean | null {
  if (end - start === 4 && body[start] === TRUE[0]) return true;
  return end - start === 5 && body[start] === FALSE[0] ? false : null;
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
