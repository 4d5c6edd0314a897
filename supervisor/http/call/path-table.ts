/**
 * The paths of a dialect. A pattern has names in braces: `/jobs/{id}` takes one segment, `/models/{name}/{rest*}` takes
 * all that is left, slashes and the empty rest included. A path without names is found at once, before any pattern.
 */
export interface Found<Value> {
  readonly value: Value;
  readonly params: Readonly<Record<string, string>>;
}

export class PathTable<Value> {
  /** The paths as they are declared. */
  readonly paths: readonly string[];
  readonly #literal = new Map<string, Found<Value>>();
  readonly #patterns: { readonly pattern: RegExp; readonly value: Value }[] = [];

  constructor(rows: Iterable<readonly [path: string, value: Value]>) {
    const all = [...rows];
    this.paths = all.map(([path]) => path);
    for (const [path, value] of all) {
      if (path.includes('{')) this.#patterns.push({ pattern: compile(path), value });
      else this.#literal.set(path, { value, params: NO_PARAMS });
    }
  }

  /** `path` is the named one: its segments are decoded. Null if it is none of these. */
  find(path: string): Found<Value> | null {
    const literal = this.#literal.get(path);
    if (literal !== undefined) return literal;
    for (const { pattern, value } of this.#patterns) {
      const match = pattern.exec(path);
      if (match !== null) return { value, params: match.groups ?? NO_PARAMS };
    }
    return null;
  }
}

const NO_PARAMS: Readonly<Record<string, string>> = {};

function compile(path: string): RegExp {
  const source = path.replace(/\{(\w+)(\*?)\}|[^{\w/]/g, (text: string, name?: string, star?: string) => {
    if (name === undefined) return `\\${text}`;
    return star === '*' ? `(?<${name}>.*)` : `(?<${name}>[^/]+)`;
  });
  return new RegExp(`^${source}$`, 's');
}
