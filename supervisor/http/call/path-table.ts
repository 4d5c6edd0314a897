/**
 * The paths of a dialect. A pattern has names in braces: `/jobs/{id}` takes one segment, `/models/{name}/{rest*}` takes
 * all that is left, slashes and the empty rest included. A path without names is found at once, before any pattern;
 * patterns are matched by Koa's router, in their order.
 */
import Router, { type Layer } from '@koa/router';

export interface Found<Value> {
  readonly value: Value;
  readonly params: Readonly<Record<string, string>>;
}

export class PathTable<Value> {
  /** The paths as they are declared. */
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

  /** `path` is the named one: its segments are decoded, and are not decoded again. Null if it is none of these. */
  find(path: string): Found<Value> | null {
    const literal = this.#literal.get(path);
    if (literal !== undefined) return literal;
    const [layer] = this.#router.match(path, METHOD).path;
    return layer === undefined
      ? null
      : { value: this.#values.get(layer) as Value, params: paramsOf(layer, path) };
  }
}

/** The methods are the dialect's to look at: for the router they are all this one. */
const METHOD = 'GET';

/** The router tries a path with and without what is left, and so has a name for each of the two. */
function paramsOf(layer: Layer, path: string): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [i, text] of (layer.captures(path) as (string | undefined)[]).entries()) {
    const name = String(layer.paramNames[i]?.name);
    params[name] = text ?? params[name] ?? '';
  }
  return params;
}

/** The pattern in the router's words: `:name`, and `{*name}` for what is left; what means something to it is escaped. */
function routerPath(pattern: string): string {
  return pattern.replace(/\{(\w+)(\*?)\}|[:*?+!()[\]\\]/g, (text, name?: string, star?: string) => {
    if (name === undefined) return `\\${text}`;
    return star === '*' ? `{*${name}}` : `:${name}`;
  });
}
