/**
 * Reads JSON as text: numbers and strings stay as they are written, so that an id of 20 digits is shown exactly, which
 * JSON.parse would round.
 */

export type JsonNode =
  | { readonly kind: 'string' | 'number' | 'word'; readonly raw: string }
  | { readonly kind: 'array'; readonly items: readonly JsonNode[] }
  | { readonly kind: 'object'; readonly entries: readonly (readonly [key: string, value: JsonNode])[] };

export type ReadJson =
  { readonly node: JsonNode; readonly problem: null } | { readonly node: null; readonly problem: string };

/** Deeper JSON is left as text: whoever walks over it does so by recursion. */
const MAX_DEPTH = 200;

/** `problem` says what is wrong with the text, in the browser's words. */
export function readJson(text: string): ReadJson {
  try {
    JSON.parse(text);
  } catch (error) {
    return { node: null, problem: error instanceof Error ? error.message : String(error) };
  }
  const node = parseValid(text);
  return node === null ? { node, problem: 'It is nested too deeply to be shown.' } : { node, problem: null };
}

interface Open {
  readonly items: JsonNode[];
  /** Null for an array. */
  readonly keys: string[] | null;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[-+.\w]+|[[\]{}]/g;

/** `text` is valid JSON. Null if it is too deep. */
function parseValid(text: string): JsonNode | null {
  const open: Open[] = [{ items: [], keys: null }];
  for (const [token] of text.matchAll(TOKEN)) {
    const top = open.at(-1) as Open;
    if (token === '[' || token === '{') {
      if (open.length > MAX_DEPTH) return null;
      open.push({ items: [], keys: token === '{' ? [] : null });
    } else if (token === ']' || token === '}') {
      open.pop();
      open.at(-1)?.items.push(closed(top));
    } else if (top.keys !== null && top.keys.length === top.items.length) top.keys.push(textOf(token));
    else top.items.push(scalar(token));
  }
  return open[0]?.items[0] ?? null;
}

function closed({ items, keys }: Open): JsonNode {
  if (keys === null) return { kind: 'array', items };
  return { kind: 'object', entries: items.map((item, i) => [keys[i] ?? '', item] as const) };
}

function scalar(raw: string): JsonNode {
  if (raw.startsWith('"')) return { kind: 'string', raw };
  return { kind: /^[-\d]/.test(raw) ? 'number' : 'word', raw };
}

/** The text that a JSON string stands for. */
export function textOf(raw: string): string {
  return JSON.parse(raw) as string;
}

/** Length up to which a list or an object of scalars stays on one line. */
const LINE = 88;

/** Writes JSON for people: indented, but with short lists on one line. */
export function formatJson(node: JsonNode, indent = ''): string {
  const inline = inlineJson(node, LINE);
  if (inline !== null) return inline;
  const deeper = `${indent}  `;
  if (node.kind === 'array')
    return `[\n${node.items.map((item) => deeper + formatJson(item, deeper)).join(',\n')}\n${indent}]`;
  if (node.kind === 'object')
    return `{\n${node.entries
      .map(([key, value]) => `${deeper}${JSON.stringify(key)}: ${formatJson(value, deeper)}`)
      .join(',\n')}\n${indent}}`;
  return node.raw;
}

/** On one line, if it has at most `max` characters and no list or object in it holds another; else null. */
export function inlineJson(node: JsonNode, max: number): string | null {
  if (node.kind === 'array') {
    if (node.items.length > max || !node.items.every(isFlat)) return null;
    return within(`[${node.items.map((item) => inlineJson(item, max) ?? '').join(', ')}]`, max);
  }
  if (node.kind === 'object') {
    if (node.entries.length > max || !node.entries.every(([, value]) => isFlat(value))) return null;
    const entries = node.entries.map(
      ([key, value]) => `${JSON.stringify(key)}: ${inlineJson(value, max) ?? ''}`,
    );
    return within(entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`, max);
  }
  return node.raw;
}

function within(text: string, max: number): string | null {
  return text.length <= max ? text : null;
}

/** Scalars, and empty lists and objects. */
function isFlat(node: JsonNode): boolean {
  if (node.kind === 'array') return node.items.length === 0;
  return node.kind !== 'object' || node.entries.length === 0;
}
