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
  /** One of `LEVELS`. */
  readonly level: string;
  /** Empty: any. */
  readonly model: string;
  readonly worker: string;
  readonly request: string;
}

export const NO_FILTER: LineFilter = { text: '', level: '', model: '', worker: '', request: '' };

/** The filter that an address asks for: any address may be given to a person, so nothing else of it counts. */
export function filterOf(wishes: URLSearchParams): LineFilter {
  const { model = '', worker = '', request = '' } = Object.fromEntries(wishes);
  return { ...NO_FILTER, model, worker, request };
}

/** The choices of a person: their texts, and the levels that each stands for; none: all. */
export const LEVELS: Readonly<Record<string, readonly [text: string, ...levels: string[]]>> = {
  '': ['all'],
  errors: ['errors', 'error', 'fatal'],
  warnings: ['warnings and errors', 'error', 'fatal', 'warn'],
  log: ['without prints', 'error', 'fatal', 'warn', 'info', 'debug', 'trace'],
  prints: ['prints (stdout, stderr)', 'stdout', 'stderr'],
  stderr: ['prints to stderr', 'stderr'],
};

export function filterLines(lines: readonly NumberedLine[], filter: LineFilter): readonly NumberedLine[] {
  const { level, model, worker, request } = filter;
  const [, ...levels] = LEVELS[level] ?? [''];
  const matches = wordFilter(filter.text);
  return lines.filter(
    (line) =>
      (levels.length === 0 || levels.includes(line.level)) &&
      (model === '' || line.model === model) &&
      (worker === '' || String(line.worker) === worker) &&
      (request === '' || line.requestId === request || line.text.includes(request)) &&
      matches(line.text),
  );
}

/** Returns whether a text has every word of `words`, in any case; a word that begins with `!` must not be there. */
export function wordFilter(words: string): (text: string) => boolean {
  const wanted = words.toLowerCase().match(/\S+/g) ?? [];
  return (text) => {
    const lower = text.toLowerCase();
    return wanted.every((word) => (/^!./.test(word) ? !lower.includes(word.slice(1)) : lower.includes(word)));
  };
}

/** The values of a column, in order. */
export function valuesOf(lines: readonly LiveLine[], column: 'model' | 'worker'): string[] {
  const values = new Set(lines.map((line) => String(line[column] ?? '')));
  values.delete('');
  return [...values].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
}
