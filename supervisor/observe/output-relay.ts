/**
 * The app's own output, promptly, to the server's stdout and stderr: the bare line, or wrapped as JSON with worker
 * and request id. When the reader of our output is slow, the workers' pipes fill up and they wait: nothing is
 * buffered without bound and the front never blocks.
 */
import type { Readable } from 'node:stream';
import { LineSplitter } from './line-splitter.js';
import type { OutputWriter } from './output-writer.js';

export interface PrintSource {
  readonly worker: number;
  readonly mark: string;
  /** Whose print it is when the output does not say. */
  runningRequestId(): string;
}

type StreamName = 'stdout' | 'stderr';

const LF = 0x0a;
const CR = 0x0d;

export class OutputRelay {
  readonly #format: 'text' | 'json';
  readonly #writers: Readonly<Record<StreamName, OutputWriter>>;
  /** Who has left a line unfinished on each writer. */
  readonly #unfinished = new Map<OutputWriter, PrintSource>();
  readonly #paused = new Map<OutputWriter, Set<Readable>>();

  constructor(format: 'text' | 'json', writers: Readonly<Record<StreamName, OutputWriter>>) {
    this.#format = format;
    this.#writers = writers;
    for (const writer of Object.values(writers)) {
      this.#paused.set(writer, new Set());
      writer.on('drain', () => this.#resume(writer));
    }
  }

  /** Follows one worker's stream until its end. */
  attach(stream: Readable, name: StreamName, source: PrintSource): void {
    const writer = this.#writers[name];
    const splitter = new LineSplitter(source.mark, (text, requestId, ended) => {
      const bytes =
        this.#format === 'text'
          ? this.#bare(writer, text, source, ended)
          : wrapped(name, text, source, requestId);
      if (bytes.length > 0 && !writer.write(bytes)) this.#pause(writer, stream);
    });
    stream.on('data', (chunk: Buffer) => splitter.push(chunk));
    stream.on('error', () => splitter.end());
    stream.on('close', () => {
      splitter.end();
      this.#paused.get(writer)?.delete(stream);
    });
  }

  /** The bytes as they came; if another worker left a line unfinished, that line is ended first. */
  #bare(writer: OutputWriter, text: Buffer, source: PrintSource, ended: boolean): Buffer {
    const owner = this.#unfinished.get(writer);
    if (ended) this.#unfinished.delete(writer);
    else this.#unfinished.set(writer, source);
    return owner === undefined || owner === source ? text : Buffer.concat([LINE_END, text]);
  }

  #pause(writer: OutputWriter, stream: Readable): void {
    stream.pause();
    this.#paused.get(writer)?.add(stream);
  }

  #resume(writer: OutputWriter): void {
    const paused = this.#paused.get(writer) as Set<Readable>;
    for (const stream of paused) stream.resume();
    paused.clear();
  }
}

const LINE_END = Buffer.from('\n');

/** A JSON line for each line that is not empty. */
function wrapped(stream: StreamName, text: Buffer, source: PrintSource, requestId: string | null): string {
  const record = {
    time: new Date().toISOString(),
    stream,
    worker: source.worker,
    requestId: requestId ?? source.runningRequestId(),
  };
  let lines = '';
  for (let start = 0; start < text.length;) {
    const end = lineEnd(text, start);
    if (end > start) lines += `${JSON.stringify({ ...record, msg: text.toString('utf8', start, end) })}\n`;
    start = end + 1;
  }
  return lines;
}

/** Where the line that starts at `from` ends, its end not included. */
function lineEnd(text: Buffer, from: number): number {
  let end = from;
  while (end < text.length && text[end] !== LF && text[end] !== CR) end += 1;
  return end;
}
