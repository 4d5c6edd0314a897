/**
 * Maps the paths of a dialect to values. A pattern has parameters in braces: `{id}` in `/jobs/{id}` matches one segment,
 * `{rest*}` in `/models/{name}/{rest*}` matches the rest of the path, which may be empty or contain slashes. Paths without
 * parameters take precedence over patterns, which Koa's router tries in order.
 */
import Router, { type Layer } from '@koa/router';

interface Found<Value> {
  readonly value: Value;
  readonly params: Readonly<Record<string, string>>;
}

/** Returns a function that finds the row of a decoded path; it returns null if no pattern matches. */
export function pathTable<Value>(
  rows: Readonly<Record<string, Value>>,
): (path: string) => Found<Value> | null {
  const router = new Router({ strict: true, sensitive: true });
  const literal = new Map<string, Found<Value>>();
  for (const [path, value] of Object.entries(rows)) {
    if (path.includes('{')) router.register(routerPath(path), [METHOD], () => {}, { name: path });
    else literal.set(path, { value, params: {} });
  }
  return (path) => {
    const found = literal.get(path);
    if (found !== undefined) return found;
    const [layer] = router.match(path, METHOD).path;
    return layer === undefined
      ? null
      : { value: rows[layer.name as string] as Value, params: paramsOf(layer, path) };
  };
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
