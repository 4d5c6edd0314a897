/**
 * Maps the paths of a dialect to values. A pattern has parameters in braces: `{id}` in `/jobs/{id}` matches one segment,
 * `{rest*}` in `/models/{name}/{rest*}` matches the rest of the path, which may be empty or contain slashes. Paths without
 * parameters take precedence over patterns, which are tried in order.
 */

interface Found<Value> {
  readonly value: Value;
  readonly params: Readonly<Record<string, string>>;
}

/** Returns a function that finds the row of a decoded path; it returns null if no pattern matches. */
export function pathTable<Value>(
  rows: Readonly<Record<string, Value>>,
): (path: string) => Found<Value> | null {
  const hasParams = ([pattern]: readonly [string, Value]): number => Number(pattern.includes('{'));
  const inOrder = Object.entries(rows).sort((a, b) => hasParams(a) - hasParams(b));
  const matchers = inOrder.map(([pattern, value]) => [matcherOf(pattern), value] as const);
  return (path) => {
    for (const [matcher, value] of matchers) {
      const match = matcher.exec(path);
      if (match !== null) return { value, params: { ...match.groups } };
    }
    return null;
  };
}

function matcherOf(pattern: string): RegExp {
  const source = pattern.replace(/\{(\w+)(\*?)\}|[$()*+.?[\\\]^|]/g, (text, name?: string, rest?: string) => {
    if (name === undefined) return `\\${text}`;
    return `(?<${name}>${rest === '*' ? '.*' : '[^/]+'})`;
  });
  return new RegExp(`^${source}$`, 's');
}
