/**
 * Relays the output of workers to the server's stdout and stderr at once: the bare line, or wrapped as JSON with worker
 * and request id. In text a line is shown while it grows, unless another worker's line is unfinished. If the reader of our
 * output is slow, the workers' pipes fill up and they wait: nothing is buffered without bound and the front never blocks.
 */
import type { Readable } from 'node:stream';
import { LineSplitter } from './line-splitter.js';
import type { OutputWriter } from './output-writer.js';
import type { RecentLines } from './recent-lines.js';
import { CR, LF, lineEnd, wrapped, type PrintSource, type StreamName } from './prints.js';

/** `text`: unchanged. `json`: wrapped. `potassium`: each line with Potassium's prefix. */
export type PrintFormat = 'text' | 'json' | 'potassium';

/** The server's stdout or stderr, as workers' streams share it. */
interface Out {
  readonly writer: OutputWriter;
  /** Streams with an unfinished line that waits for another worker's line to end; the longest waiting first. */
  readonly waiting: Map<Readable, LineSplitter>;
  readonly paused: Set<Readable>;
}

export class OutputRelay {
  readonly #format: PrintFormat;
  readonly #workers: () => number;
  readonly #outs: Readonly<Record<StreamName, Out>>;
  readonly #receivers: readonly Pick<RecentLines, 'of'>[];
  /** Streams whose unfinished line was ended for another worker's line, and that have sent nothing since. */
  readonly #cut = new WeakSet<object>();

  /** `workers` returns the current number of workers. `receivers` get copies of everything that workers print. */
  constructor(
    format: PrintFormat,
    workers: () => number,
    writers: Readonly<Record<StreamName, OutputWriter>>,
    receivers: readonly Pick<RecentLines, 'of'>[] = [],
  ) {
    this.#format = format;
    this.#workers = workers;
    this.#outs = { stdout: outOf(writers.stdout), stderr: outOf(writers.stderr) };
    this.#receivers = receivers;
  }

  /** Relays one worker's stream until its end. */
  attach(stream: Readable, name: StreamName, source: PrintSource): void {
    const out = this.#outs[name];
    const { writer } = out;
    const splitter = new LineSplitter(source.mark, this.#format !== 'json', (text, origin, ended) => {
      const bytes =
        this.#format === 'json'
          ? wrapped(name, text, source, origin)
          : this.#bare(writer, this.#prefixed(writer, text, source, origin.requestId, stream), stream, ended);
      if (bytes.length === 0 || writer.write(bytes)) return;
      stream.pause();
      out.paused.add(stream);
    });
    const copies = this.#receivers.map((receiver) => receiver.of(name, source));
    stream.on('data', (chunk: Buffer) => {
      for (const copy of copies) copy.push(chunk);
      splitter.push(chunk);
      if (this.#format !== 'text') return;
      if (splitter.holdsText) out.waiting.set(stream, splitter);
      showBegun(out);
    });
    const end = (): void => {
      for (const copy of copies) copy.end();
      splitter.end();
    };
    stream.on('error', end);
    stream.on('close', () => {
      end();
      out.paused.delete(stream);
      out.waiting.delete(stream);
      if (writer.lineOf === stream) writer.lineOf = ABANDONED;
      showBegun(out);
    });
  }

  /** The unchanged bytes; ends the unfinished line of another worker first, whose own line end is then left out. */
  #bare(writer: OutputWriter, text: Buffer, stream: Readable, ended: boolean): Buffer {
    if (this.#cut.delete(stream) && text.equals(LINE_END)) return NOTHING;
    const owner = writer.lineOf;
    writer.lineOf = ended ? null : stream;
    if (owner === null || owner === stream) return text;
    this.#cut.add(owner);
    return Buffer.concat([LINE_END, text]);
  }

  #prefixed(
    writer: OutputWriter,
    text: Buffer,
    source: PrintSource,
    requestId: string,
    stream: Readable,
  ): Buffer {
    if (this.#format === 'text') return text;
    const id = requestId || source.runningRequestId();
    const label = source.label();
    const worker = label === '' ? source.worker : `${label}/${source.worker}`;
    const facts = this.#workers() > 1 || label !== '' ? [`worker ${worker}`] : [];
    if (id !== '') facts.push(`requestID ${id}`);
    if (facts.length === 0) return text;
    const continues = writer.lineOf === stream;
    return prefixLines(text, Buffer.from(`[${facts.join(', ')}] `), continues);
  }
}

function outOf(writer: OutputWriter): Out {
  const out: Out = { writer, waiting: new Map(), paused: new Set() };
  writer.on('drain', () => {
    for (const stream of out.paused) stream.resume();
    out.paused.clear();
  });
  writer.on('lineEnd', () => showBegun(out));
  return out;
}

/** Shows unfinished lines, the longest waiting first, unless another worker's line is unfinished. */
function showBegun({ writer, waiting }: Out): void {
  for (const [stream, splitter] of waiting) {
    if (writer.lineOf !== null && writer.lineOf !== stream && writer.lineOf !== ABANDONED) continue;
    waiting.delete(stream);
    splitter.emitBegun();
  }
}

/** Owner of an unfinished line whose stream has ended. */
const ABANDONED = {};

const LINE_END = Buffer.from('\n');
const NOTHING = Buffer.alloc(0);

/** `continues`: the first line already has its prefix. */
function prefixLines(text: Buffer, prefix: Buffer, continues: boolean): Buffer {
  const parts: Buffer[] = [];
  for (let start = 0; start < text.length;) {
    const end = lineEnd(text, start);
    const next = text[end] === CR && text[end + 1] === LF ? end + 2 : end + 1;
    if (start > 0 || !continues) parts.push(prefix);
    parts.push(text.subarray(start, next));
    start = next;
  }
  return Buffer.concat(parts);
}
