/**
 * Reads the JSON of the Open Inference Protocol, which is wider than JSON: integers of 64 bits are exact, and numbers
 * may be `NaN`, `Infinity` and `-Infinity`, as Triton reads and writes them.
 *
 * `JSON.parse` is three times as fast as our reader in JavaScript, so it comes first. Only if it refuses the text, or
 * may have changed a number that matters, does a reader of our own read the digits.
 */
import { badBody, type ServeError } from '../../../protocol/errors.js';
import { MAX_DIMENSIONS, type Fields } from '../../../protocol/values/tensor.js';

/** Far more than the lists of a tensor, and far less than the stack holds. */
const MAX_DEPTH = 2 * MAX_DIMENSIONS;

/**
 * Returns the value; integers beyond 2^53 are BigInts if `isInexact` finds that `JSON.parse` changed a number. `what`
 * names the text in an error. @throws SERVE_BAD_BODY
 */
export function readExactJson(text: string, what: string, isInexact: (value: unknown) => boolean): unknown {
  const fast = parsed(text);
  return fast === undefined || isInexact(fast) ? new ExactReader(text, what).read() : fast;
}

/** Undefined if it is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** One reading of a text, from left to right. */
class ExactReader {
  readonly #text: string;
  readonly #what: string;
  #at = 0;

  constructor(text: string, what: string) {
    this.#text = text;
    this.#what = what;
  }

  read(): unknown {
    const value = this.#value(0);
    if (this.#next() !== '') throw this.#unexpected();
    return value;
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw this.#invalid(`it is nested deeper than ${MAX_DEPTH} levels`);
    switch (this.#next()) {
      case '[':
        return this.#list(depth + 1);
      case '{':
        return this.#object(depth + 1);
      case '"':
        return this.#string();
      default:
        return this.#word();
    }
  }

  #list(depth: number): unknown[] {
    this.#at += 1;
    const list: unknown[] = [];
    if (this.#next() === ']') this.#at += 1;
    else
      do list.push(this.#value(depth));
      while (this.#hasMore(']'));
    return list;
  }

  #object(depth: number): Record<string, unknown> {
    this.#at += 1;
    const entries: [string, unknown][] = [];
    if (this.#next() === '}') this.#at += 1;
    else
      do entries.push(this.#entry(depth));
      while (this.#hasMore('}'));
    return Object.fromEntries(entries); // an own property of `__proto__`, too
  }

  #entry(depth: number): [string, unknown] {
    if (this.#next() !== '"') throw this.#unexpected();
    const key = this.#string();
    if (this.#next() !== ':') throw this.#unexpected();
    this.#at += 1;
    return [key, this.#value(depth)];
  }

  /** Passes the comma or the closing bracket after an item. */
  #hasMore(close: string): boolean {
    const mark = this.#next();
    if (mark !== ',' && mark !== close) throw this.#unexpected();
    this.#at += 1;
    return mark === ',';
  }

  #string(): string {
    const start = this.#at;
    let end = start + 1;
    while (end < this.#text.length && this.#text[end] !== '"') end += this.#text[end] === '\\' ? 2 : 1;
    this.#at = end + 1;
    const value = parsed(this.#text.slice(start, end + 1));
    if (typeof value === 'string') return value;
    this.#at = start;
    throw this.#invalid(
      `the text at character ${start} has no end, a control character or an unknown escape`,
    );
  }

  #word(): unknown {
    WORD.lastIndex = this.#at;
    const [word, digits] = WORD.exec(this.#text) ?? [];
    if (word === undefined) throw this.#unexpected();
    this.#at += word.length;
    if (WORDS.has(word)) return WORDS.get(word);
    const isShort = digits !== undefined && digits.length <= MAX_INTEGER_CHARS;
    return isShort ? exactInteger(digits) : this.#number(word);
  }

  #number(text: string): number {
    const value = Number(text);
    if (Number.isFinite(value)) return value;
    throw this.#invalid(`${text.slice(0, MAX_SHOWN_CHARS)} is beyond the largest number`);
  }

  /** The character after white space; empty at the end. */
  #next(): string {
    SPACE.lastIndex = this.#at;
    SPACE.exec(this.#text);
    this.#at = SPACE.lastIndex;
    return this.#text.charAt(this.#at);
  }

  #unexpected(): ServeError {
    if (this.#at >= this.#text.length) return this.#invalid('it ends too early');
    return this.#invalid(
      `${JSON.stringify(this.#text.charAt(this.#at))} is unexpected at character ${this.#at}`,
    );
  }

  #invalid(why: string): ServeError {
    return badBody(`${this.#what} is not valid JSON: ${why}.`);
  }
}

const SPACE = /[ \t\n\r]*/y;

/** A number or a word; the group is set for an integer. */
const WORD =
  /(-?(?:0|[1-9]\d*)(?![\d.eE]))|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity/y;

const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
  ['NaN', NaN],
  ['Infinity', Infinity],
  ['-Infinity', -Infinity],
]);

const MAX_SHOWN_CHARS = 60;

/** A sign and the 20 digits of 2^64; making a BigInt of millions of digits would take minutes. */
const MAX_INTEGER_CHARS = 21;

function exactInteger(digits: string): number | bigint {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}

/** Whether the request must be read again, digit by digit. It may be any value of JSON. */
export function isInexactRequest(request: unknown): boolean {
  const { inputs, parameters } = fieldsOf(request);
  if (Object.values(fieldsOf(parameters)).some(isInexactInteger)) return true;
  return Array.isArray(inputs) && inputs.some((input) => isInexactInput(fieldsOf(input)));
}

function isInexactInput({ datatype, data }: Fields): boolean {
  return hasNumber(data, datatype === 'INT64' || datatype === 'UINT64' ? isInexactInteger : isInfinite, 0);
}

/** A list that is nested deeper is refused, whatever its numbers are. */
function hasNumber(data: unknown, isWanted: (value: unknown) => boolean, depth: number): boolean {
  if (!Array.isArray(data) || depth > MAX_DIMENSIONS) return false;
  return data.some((item) => (Array.isArray(item) ? hasNumber(item, isWanted, depth + 1) : isWanted(item)));
}

function isInexactInteger(value: unknown): boolean {
  return typeof value === 'number' && !Number.isSafeInteger(value) && !(Math.abs(value) < 2 ** 53);
}

/** JSON has no infinity: the text had a number beyond the largest. */
function isInfinite(value: unknown): boolean {
  return value === Infinity || value === -Infinity;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
