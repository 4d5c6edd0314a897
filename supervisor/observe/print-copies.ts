/**
 * Copies the prints of workers to files, in whole lines. In text each line has its time and worker, because a file contains
 * the lines of all workers.
 */
import { LineSplitter } from './line-splitter.js';
import type { LogFile } from './log-file.js';
import { wrapped, type PrintReceiver, type PrintSource, type StreamName } from './prints.js';

export class PrintCopies implements PrintReceiver {
  readonly #format: 'text' | 'json';
  readonly #files: readonly LogFile[];

  constructor(format: 'text' | 'json', files: readonly LogFile[]) {
    this.#format = format;
    this.#files = files;
  }

  /** Returns a receiver for the bytes of one worker's stream. */
  of(name: StreamName, source: PrintSource): Pick<LineSplitter, 'push' | 'end'> {
    return new LineSplitter(source.mark, this.#format !== 'json', (text, origin) => {
      const lines =
        this.#format === 'json' ? wrapped(name, text, source, origin) : named(text, source, origin.requestId);
      if (lines === '') return;
      for (const file of this.#files) file.writeLines(lines);
    });
  }
}

function named(text: Buffer, source: PrintSource, requestId: string): string {
  const label = source.label();
  const id = requestId || source.runningRequestId();
  const whose = `${label === '' ? '' : `${label} `}worker ${source.worker}${id === '' ? '' : ` ${id}`}`;
  const prefix = `[${new Date().toISOString()}] ${whose}: `;
  const lines = text.toString('utf8').split(/[\r\n]+/);
  return lines.map((line) => (line === '' ? '' : `${prefix}${line}\n`)).join('');
}
