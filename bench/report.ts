/** Rows of the one table, their verdicts, and how both are printed. */

export interface Goal {
  readonly must: number;
  readonly stretch?: number;
  readonly better: 'higher' | 'lower';
  /** The unit of the figure: `x` (a ratio), `%`, `ms`, `MB`, ... */
  readonly unit: string;
}

export interface Row {
  readonly name: string;
  /** Absolute numbers with their units, as text. */
  readonly ours: string;
  readonly baseline: string;
  /** The figure that is held against the goal. */
  readonly value: number;
  /** Null if the row is for comparison only. */
  readonly goal: Goal | null;
}

export type Verdict = 'stretch' | 'pass' | 'BELOW' | '-';

export function verdictOf({ value, goal }: Row): Verdict {
  if (goal === null) return '-';
  const reaches = (limit: number): boolean => (goal.better === 'higher' ? value >= limit : value <= limit);
  if (goal.stretch !== undefined && reaches(goal.stretch)) return 'stretch';
  return reaches(goal.must) ? 'pass' : 'BELOW';
}

const HEADER = ['case', 'ours', 'baseline', 'ratio', 'must', 'stretch', 'verdict'];

/** A Markdown table with its columns aligned, ready for the docs. */
export function formatTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.name,
    row.ours,
    row.baseline,
    formatValue(row.value, row.goal?.unit ?? 'x'),
    formatLimit(row.goal, row.goal?.must),
    formatLimit(row.goal, row.goal?.stretch),
    verdictOf(row),
  ]);
  const widths = HEADER.map((title, i) =>
    Math.max(title.length, ...cells.map((line) => line[i]?.length ?? 0)),
  );
  const format = (line: readonly string[]): string =>
    `| ${line.map((cell, i) => cell.padEnd(widths[i] as number)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [format(HEADER), rule, ...cells.map(format)].join('\n');
}

function formatLimit(goal: Goal | null, limit: number | undefined): string {
  if (goal === null || limit === undefined) return '';
  return `${goal.better === 'higher' ? '>=' : '<='} ${formatValue(limit, goal.unit)}`;
}

function formatValue(value: number, unit: string): string {
  if (unit === 'x') return `${value.toFixed(2)}x`;
  if (unit === '%') return `${value.toFixed(1)}%`;
  return `${significant(value)} ${unit}`;
}

/** Prints whole numbers as they are, others with the digits that mean something. */
export function significant(value: number): string {
  if (Number.isInteger(value) || !Number.isFinite(value)) return String(value);
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}
