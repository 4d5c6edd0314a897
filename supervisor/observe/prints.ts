/** Attribution of a worker's prints, their form in JSON, and their copies in files. */
import type { PrintOrigin } from '../../protocol/wire/print-mark.js';
import { LineSplitter } from './line-splitter.js';
import type { LogFile } from './log-file.js';
import { messageOf } from './log-text.js';

export type StreamName = 'stdout' | 'stderr';

export interface PrintSource {
  /** The model's name if the server has several models, else empty. */
  label(): string;
  readonly worker: number;
  readonly mark: string;
  pid(): number;
  /** The call of a print without a mark; empty if unknown. */
  runningRequestId(): string;
  /** The same, or the call that has just ended: its print may arrive after its answer. */
  lastRequestId(): string;
}

export const LF = 0x0a;
export const CR = 0x0d;

/** Returns a JSON line for each non-empty line; one for a record of a log. */
export function wrapped(stream: StreamName, text: Buffer, source: PrintSource, origin: PrintOrigin): string {
  const label = source.label();
  const { level, logger } = origin;
  const record = {
    ...(level === '' ? {} : { level }),
    time: new Date().toISOString(),
    stream,
    ...(label === '' ? {} : { model: label }),
    worker: source.worker,
    pid: source.pid(),
    requestId: origin.requestId || source.runningRequestId(),
    ...(logger === '' ? {} : { logger }),
  };
  const lines = text.toString('utf8').split('\n').map(lastState);
  if (level !== '') return `${JSON.stringify({ ...record, ...messageOf(lines.join('\n').trimEnd()) })}\n`;
  return lines.map((msg) => (msg === '' ? '' : `${JSON.stringify({ ...record, msg })}\n`)).join('');
}

/** The last text of a line that `\r` has overwritten, such as a progress bar. */
function lastState(line: string): string {
  if (!line.includes('\r')) return line;
  return line.split('\r').findLast((state) => state.trim() !== '') ?? '';
}

/** Index of the line end (or the end of `text`) of the line that starts at `from`. */
export function lineEnd(text: Buffer, from: number): number {
  let end = from;
  while (end < text.length && text[end] !== LF && text[end] !== CR) end += 1;
  return end;
}

/**
 * Copies the prints of workers to files, in whole lines. In text each line has its time and worker, because a file contains
 * the lines of all workers.
 */
export function printCopies(format: 'text' | 'json', files: readonly LogFile[]) {
  return {
    of: (name: StreamName, source: PrintSource) =>
      new LineSplitter(source.mark, format !== 'json', (text, origin) => {
        const isJson = format === 'json';
        const lines = isJson ? wrapped(name, text, source, origin) : named(text, source, origin.requestId);
        if (lines !== '') for (const file of files) file.writeLines(lines);
      }),
  };
}

function named(text: Buffer, source: PrintSource, requestId: string): string {
  const label = source.label();
  const id = requestId || source.runningRequestId();
  const whose = `${label === '' ? '' : `${label} `}worker ${source.worker}${id === '' ? '' : ` ${id}`}`;
  const prefix = `[${new Date().toISOString()}] ${whose}: `;
  const lines = text.toString('utf8').split(/[\r\n]+/);
  return lines.map((line) => (line === '' ? '' : `${prefix}${line}\n`)).join('');
}
