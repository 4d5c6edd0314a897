/**
 * Reads an object of plain members as Multi Model Server does. Its clients may write invalid JSON: names and texts in
 * single quotes or in none, a comma too many. Nested values are not supported: valid JSON is read by `JSON.parse`.
 */

const SPACE = /\s*/y;
const QUOTED = /"((?:[^"\\]|\\[^])*)"|'((?:[^'\\]|\\[^])*)'/y;
const BARE = /[^\s,:{}[\]"'\\]+/y;

/**
 * Returns the members by name, texts unescaped; null if the text is no such object. If a name is repeated, the last
 * member counts.
 */
export function readLenientObject(text: string): Map<string, string | null> | null {
  const reader = new Reader(text);
  const members = new Map<string, string | null>();
  if (!reader.skip('{')) return null;
  while (!reader.skip('}')) {
    const name = reader.word();
    if (name === null || !reader.skip(':')) return null;
    const value = reader.word();
    if (value === null) return null;
    members.set(name.text, !value.isQuoted && value.text === 'null' ? null : value.text);
    if (!reader.skip(',') && !reader.isAt('}')) return null;
  }
  return reader.isAtEnd ? members : null;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    this.#match(SPACE);
    return this.#at === this.#text.length;
  }

  isAt(sign: string): boolean {
    this.#match(SPACE);
    return this.#text[this.#at] === sign;
  }

  skip(sign: string): boolean {
    if (!this.isAt(sign)) return false;
    this.#at += 1;
    return true;
  }

  word(): { text: string; isQuoted: boolean } | null {
    this.#match(SPACE);
    const quoted = this.#match(QUOTED);
    if (quoted !== null) return { text: unescaped(quoted[1] ?? quoted[2] ?? ''), isQuoted: true };
    const bare = this.#match(BARE);
    return bare === null ? null : { text: bare[0], isQuoted: false };
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.#at = pattern.lastIndex;
    return found;
  }
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

function unescaped(text: string): string {
  return text.replace(/\\(?:u([\da-fA-F]{4})|([^]))/g, (_, unit: string | undefined, letter: string) =>
    unit === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(parseInt(unit, 16)),
  );
}
