/**
 * What workers print, once more, in whole lines for files. In text each line says when it came and from whom: in a file
 * the lines of all workers stand together.
 */
import { LineSplitter } from './line-splitter.js';
import type { LogFile } from './log-file.js';
import { wrapped, type PrintSource, type StreamName } from './prints.js';

export class PrintCopies {
  readonly #format: 'text' | 'json';
  readonly #files: readonly LogFile[];

  constructor(format: 'text' | 'json', files: readonly LogFile[]) {
    this.#format = format;
    this.#files = files;
  }

  /** Takes the bytes of one worker's stream until its end. */
  of(name: StreamName, source: PrintSource): Pick<LineSplitter, 'push' | 'end'> {
    return new LineSplitter(source.mark, (text, requestId) => {
      const lines =
        this.#format === 'json' ? wrapped(name, text, source, requestId) : named(text, source, requestId);
      if (lines === '') return;
      for (const file of this.#files) file.writeLines(lines);
    });
  }
}

function named(text: Buffer, source: PrintSource, requestId: string | null): string {
  const label = source.label();
  const id = requestId ?? source.runningRequestId();
  const whose = `${label === '' ? '' : `${label} `}worker ${source.worker}${id === '' ? '' : ` ${id}`}`;
  const prefix = `[${new Date().toISOString()}] ${whose}: `;
  const lines = text.toString('utf8').split(/[\r\n]+/);
  return lines.map((line) => (line === '' ? '' : `${prefix}${line}\n`)).join('');
}
