/** Limits of a JSON tree: a list of a million numbers must not stop the browser. */
import type { JsonNode } from '../parts/json-text.js';

/** Children that are drawn at once. */
const STEP = 100;
/** Numbers take less room: they are drawn one after the other. */
const NUMBERS_STEP = 400;
const OPEN_DEPTH = 2;
const OPEN_CHILDREN = 30;

/** The root is always open, and what is small and near to it. */
export function openAtFirst(node: JsonNode, depth: number): boolean {
  return depth === 0 || (depth <= OPEN_DEPTH && childCount(node) <= OPEN_CHILDREN);
}

export type Row =
  | { readonly kind: 'child'; readonly name: string; readonly node: JsonNode }
  /** Scalars of a list, one after the other. */
  | { readonly kind: 'numbers'; readonly name: string; readonly text: string };

export interface Rows {
  readonly rows: readonly Row[];
  /** Number of children that there are. */
  readonly total: number;
}

/** The first `shown` children. */
export function rowsOf(node: JsonNode, shown: number): Rows {
  const total = childCount(node);
  if (node.kind === 'object') {
    const rows = node.entries
      .slice(0, shown)
      .map(([name, child]) => ({ kind: 'child', name, node: child }) as const);
    return { rows, total };
  }
  if (node.kind !== 'array') return { rows: [], total };
  const items = node.items.slice(0, shown);
  if (isNumbers(node))
    return { rows: [{ kind: 'numbers', name: '', text: items.map(rawOf).join(', ') }], total };
  return { rows: items.map((child, i) => ({ kind: 'child', name: String(i), node: child }) as const), total };
}

/** Number of children that are drawn first. */
export function firstStep(node: JsonNode): number {
  return isNumbers(node) ? NUMBERS_STEP : STEP;
}

/** Number of children that the next step adds. */
export function nextStep(shown: number, total: number): number {
  return Math.min(total - shown, Math.max(STEP, shown));
}

function childCount(node: JsonNode): number {
  if (node.kind === 'array') return node.items.length;
  return node.kind === 'object' ? node.entries.length : 0;
}

/** Looking at the first ones is enough: others are drawn as they are too. */
function isNumbers(node: JsonNode): boolean {
  return (
    node.kind === 'array' &&
    node.items.length > 0 &&
    node.items.every(({ kind }) => kind === 'number' || kind === 'word')
  );
}

function rawOf(node: JsonNode): string {
  return node.kind === 'number' || node.kind === 'word' ? node.raw : '';
}
