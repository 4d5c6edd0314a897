/**
 * Maps the paths of a dialect to values. A pattern has parameters in braces: `{id}` in `/jobs/{id}` matches one segment,
 * `{rest*}` in `/models/{name}/{rest*}` matches the rest of the path, which may be empty or contain slashes. Paths without
 * parameters take precedence over patterns, which Koa's router tries in order.
 */
import Router, { type Layer } from '@koa/router';

export interface Found<Value> {
  readonly value: Value;
  readonly params: Readonly<Record<string, string>>;
}

export class PathTable<Value> {
  /** The paths and patterns as declared. */
  readonly paths: readonly string[];
  readonly #literal = new Map<string, Found<Value>>();
  readonly #router = new Router({ strict: true, sensitive: true });
  readonly #values = new Map<unknown, Value>();

  constructor(rows: Iterable<readonly [path: string, value: Value]>) {
    const all = [...rows];
    this.paths = all.map(([path]) => path);
    for (const [path, value] of all) {
      if (path.includes('{'))
        this.#values.set(
          this.#router.register(routerPath(path), [METHOD], () => {}),
          value,
        );
      else this.#literal.set(path, { value, params: {} });
    }
  }

  /** `path` is already decoded. Null if nothing matches. */
  find(path: string): Found<Value> | null {
    const literal = this.#literal.get(path);
    if (literal !== undefined) return literal;
    const [layer] = this.#router.match(path, METHOD).path;
    return layer === undefined
      ? null
      : { value: this.#values.get(layer) as Value, params: paramsOf(layer, path) };
  }
}

/** The router needs a method, so every path is registered and looked up with this one; dialects check the method. */
const METHOD = 'GET';

/** `{*rest}` is in the router's parameter list twice, once for a path without the rest: the value that is there counts. */
function paramsOf(layer: Layer, path: string): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [i, text] of (layer.captures(path) as (string | undefined)[]).entries()) {
    const name = String(layer.paramNames[i]?.name);
    params[name] = text ?? params[name] ?? '';
  }
  return params;
}

/** Translates a pattern to the router's syntax: `:name`, `{*name}` for the rest; special characters are escaped. */
function routerPath(pattern: string): string {
  return pattern.replace(/\{(\w+)(\*?)\}|[:*?+!()[\]\\]/g, (text, name?: string, star?: string) => {
    if (name === undefined) return `\\${text}`;
    return star === '*' ? `{*${name}}` : `:${name}`;
  });
}
