/**
 * Reads JSON as text: numbers and strings stay as they are written, so that an id of 20 digits is shown exactly, which
 * JSON.parse would round.
 */

export type JsonNode = { readonly kind: 'string' | 'number' | 'word'; readonly raw: string } | JsonList;

interface JsonList {
  readonly kind: 'array' | 'object';
  /** Keys of an object, one for each child. */
  readonly keys: string[];
  readonly children: JsonNode[];
}

/** `problem` says what is wrong with the text. */
export type ReadJson =
  { readonly node: JsonNode; readonly problem: null } | { readonly node: null; readonly problem: string };

/** Deeper JSON is left as text: whoever walks over it does so by recursion. */
const MAX_DEPTH = 200;

/** Problems of the text are in the browser's words. */
export function readJson(text: string): ReadJson {
  try {
    JSON.parse(text);
    return { node: parseValid(text), problem: null };
  } catch (error) {
    return { node: null, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Matches only the beginning of a string: an expression for a whole one overflows the stack at some megabytes. */
const TOKEN = /[-+.\w]+|["[\]{}]/g;

function* tokensOf(text: string): Generator<string> {
  const pattern = new RegExp(TOKEN);
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    if (match[0] === '"') pattern.lastIndex = endOfString(text, match.index);
    yield text.slice(match.index, pattern.lastIndex);
  }
}

/** `start`: place of the quote before it. */
function endOfString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote + 1;
}

function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text[before - 1] === '\\') before -= 1;
  return (at - before) % 2 === 1;
}

/** `text` is valid JSON. @throws Error if it is too deep */
function parseValid(text: string): JsonNode {
  const root: JsonList = { kind: 'array', keys: [], children: [] };
  const open = [root];
  for (const token of tokensOf(text)) {
    const { kind, keys, children } = open.at(-1) as JsonList;
    if (token === ']' || token === '}') open.pop();
    else if (kind === 'object' && keys.length === children.length) keys.push(textOf(token));
    else if (token === '[' || token === '{') {
      if (open.length > MAX_DEPTH) throw new Error('It is nested too deeply to be shown.');
      const list: JsonList = { kind: token === '[' ? 'array' : 'object', keys: [], children: [] };
      children.push(list);
      open.push(list);
    } else children.push(scalar(token));
  }
  return root.children[0] as JsonNode;
}

function scalar(raw: string): JsonNode {
  if (raw.startsWith('"')) return { kind: 'string', raw };
  return { kind: /^[-\d]/.test(raw) ? 'number' : 'word', raw };
}

/** The text that a JSON string stands for. */
export function textOf(raw: string): string {
  return JSON.parse(raw) as string;
}

/** Number of values in a list or an object. */
export function countOf(node: JsonNode): number {
  return 'raw' in node ? 0 : node.children.length;
}

/** The first values of a list or an object, by their names. */
export function entriesOf(node: JsonNode, max = Infinity): (readonly [name: string, value: JsonNode])[] {
  if ('raw' in node) return [];
  return node.children.slice(0, max).map((child, i) => [node.keys[i] ?? String(i), child] as const);
}

const BRACKETS = { array: ['[', ']'], object: ['{', '}'] } as const;

/** Length up to which a list or an object of scalars stays on one line. */
const LINE = 88;

/** Writes JSON for people: indented, but with short lists on one line. */
export function formatJson(node: JsonNode, indent = ''): string {
  const inline = inlineJson(node, LINE);
  if ('raw' in node || inline !== null) return inline ?? '';
  const [open, close] = BRACKETS[node.kind];
  const deeper = `${indent}  `;
  const members = membersOf(node, (child) => formatJson(child, deeper)).map((member) => deeper + member);
  return `${open}\n${members.join(',\n')}\n${indent}${close}`;
}

/** On one line, if it has at most `max` characters and no list or object in it holds another; else null. */
export function inlineJson(node: JsonNode, max: number): string | null {
  if ('raw' in node) return node.raw;
  if (node.children.length > max || node.children.some((child) => countOf(child) > 0)) return null;
  const [open, close] = BRACKETS[node.kind];
  const members = membersOf(node, (child) => inlineJson(child, max) ?? '').join(', ');
  const gap = node.kind === 'object' && members !== '' ? ' ' : '';
  const text = open + gap + members + gap + close;
  return text.length <= max ? text : null;
}

function membersOf({ kind, keys, children }: JsonList, write: (child: JsonNode) => string): string[] {
  return children.map((child, i) => (kind === 'object' ? `${JSON.stringify(keys[i])}: ` : '') + write(child));
}
