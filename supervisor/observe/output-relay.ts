/**
 * The app's own output, promptly, to the server's stdout and stderr: the bare line, or wrapped as JSON with worker
 * and request id. When the reader of our output is slow, the workers' pipes fill up and they wait: nothing is
 * buffered without bound and the front never blocks.
 */
import type { Readable } from 'node:stream';
import { LineSplitter } from './line-splitter.js';
import type { LineWriter } from './log.js';

export interface PrintSource {
  readonly worker: number;
  readonly mark: string;
  /** Whose print it is when the output does not say. */
  runningRequestId(): string;
}

const LF = 0x0a;
const CR = 0x0d;

export class OutputRelay {
  readonly #format: 'text' | 'json';
  readonly #writers: { readonly stdout: LineWriter; readonly stderr: LineWriter };
  /** Who has left a line unfinished on each writer. */
  readonly #unfinished = new Map<LineWriter, PrintSource>();
  readonly #paused = new Map<LineWriter, Set<Readable>>();

  constructor(format: 'text' | 'json', writers: { stdout: LineWriter; stderr: LineWriter }) {
    this.#format = format;
    this.#writers = writers;
    for (const writer of Object.values(writers)) {
      this.#paused.set(writer, new Set());
      writer.on('drain', () => this.#resume(writer));
    }
  }

  /** Follows one worker's stream until its end. */
  attach(stream: Readable, name: 'stdout' | 'stderr', source: PrintSource): void {
    const writer = this.#writers[name];
    const splitter = new LineSplitter(source.mark, (line, requestId, ended) => {
      const text =
        this.#format === 'text'
          ? this.#bare(writer, line, source, ended)
          : wrapped(name, line, source, requestId);
      if (text !== '' && !writer.write(text)) this.#pause(writer, stream);
    });
    stream.on('data', (chunk: Buffer) => splitter.push(chunk));
    stream.on('error', () => splitter.end());
    stream.on('close', () => {
      splitter.end();
      this.#paused.get(writer)?.delete(stream);
    });
  }

  /** The bytes as they came; if another worker left a line unfinished, that line is ended first. */
  #bare(writer: LineWriter, line: Buffer, source: PrintSource, ended: boolean): string {
    const owner = this.#unfinished.get(writer);
    const breakFirst = owner !== undefined && owner !== source ? '\n' : '';
    if (ended) this.#unfinished.delete(writer);
    else this.#unfinished.set(writer, source);
    return breakFirst + line.toString('utf8');
  }

  #pause(writer: LineWriter, stream: Readable): void {
    stream.pause();
    this.#paused.get(writer)?.add(stream);
  }

  #resume(writer: LineWriter): void {
    const paused = this.#paused.get(writer) as Set<Readable>;
    for (const stream of paused) stream.resume();
    paused.clear();
  }
}

function wrapped(name: string, line: Buffer, source: PrintSource, requestId: string | null): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === LF || line[end - 1] === CR)) end -= 1;
  if (end === 0) return '';
  const record = {
    time: new Date().toISOString(),
    stream: name,
    worker: source.worker,
    requestId: requestId ?? source.runningRequestId(),
    msg: line.toString('utf8', 0, end),
  };
  return `${JSON.stringify(record)}\n`;
}
