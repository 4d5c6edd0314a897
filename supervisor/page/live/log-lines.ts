/** The last lines of the server's log, as the page keeps them, and which of them a person wants to see. */
import type { LiveLine, LiveLines } from '../../status/live-types.js';

export const MAX_LINES = 2000;

export interface NumberedLine extends LiveLine {
  /** Counts up. */
  readonly number: number;
  /** Whether lines before it are missing. */
  readonly isAfterGap: boolean;
}

/** Adds lines, and drops the oldest of too many. */
export function withLines(before: readonly NumberedLine[], { missed, lines }: LiveLines): NumberedLine[] {
  const first = (before.at(-1)?.number ?? 0) + 1;
  const added = lines.map((line, i) => ({ ...line, number: first + i, isAfterGap: missed && i === 0 }));
  return [...before, ...added].slice(-MAX_LINES);
}

export interface LineFilter {
  /** Every word must be in the line; `!word`: must not be. */
  readonly text: string;
  /** One of `LEVELS`; empty: any. */
  readonly level: string;
  /** Empty: any. */
  readonly model: string;
  readonly worker: string;
  readonly request: string;
}

export const NO_FILTER: LineFilter = { text: '', level: '', model: '', worker: '', request: '' };

/** The choices of a person, and the levels that each stands for. */
export const LEVELS: Readonly<Record<string, readonly string[]>> = {
  errors: ['error', 'fatal'],
  warnings: ['error', 'fatal', 'warn'],
  log: ['error', 'fatal', 'warn', 'info', 'debug', 'trace'],
  prints: ['stdout', 'stderr'],
  stderr: ['stderr'],
};

export function filterLines(lines: readonly NumberedLine[], filter: LineFilter): readonly NumberedLine[] {
  const { level, model, worker, request } = filter;
  const levels = LEVELS[level];
  const words = wordsOf(filter.text);
  return lines.filter(
    (line) =>
      (levels === undefined || levels.includes(line.level)) &&
      (model === '' || line.model === model) &&
      (worker === '' || String(line.worker) === worker) &&
      (request === '' || line.requestId === request || line.text.includes(request)) &&
      hasWords(line.text.toLowerCase(), words),
  );
}

/** The words of a filter, in lower case. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/\S+/g) ?? [];
}

/** Whether every word is in the text; a word that begins with `!` must not be. The text is in lower case. */
export function hasWords(text: string, words: readonly string[]): boolean {
  return words.every((word) =>
    word.length > 1 && word.startsWith('!') ? !text.includes(word.slice(1)) : text.includes(word),
  );
}

/** The values of a column, in order. */
export function valuesOf(lines: readonly LiveLine[], column: 'model' | 'worker'): string[] {
  const values = new Set(lines.map((line) => String(line[column] ?? '')));
  values.delete('');
  return [...values].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
}
