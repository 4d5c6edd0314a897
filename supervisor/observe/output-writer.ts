/**
 * Writes to the server's stdout or stderr. Keeps order, never blocks the front and never fails: output that can no longer
 * be written (the reader has ended, the disk is full) is dropped. `write` returns false if the caller should wait for
 * `drain`.
 */
import { fstatSync, write } from 'node:fs';
import { Writable } from 'node:stream';

/** Pause before a write is retried on a terminal or a shared descriptor that cannot take more now. */
const RETRY_MS = 10;

export class OutputWriter extends Writable {
  /** The source of the unfinished line, which no other may continue; null at the start of a line. */
  lineOf: object | null = null;
  /** The status line below all output; null except on a terminal. */
  statusLine: StatusLine | null = null;
  readonly #send: (data: Buffer, done: () => void) => void;

  constructor(fd: 1 | 2) {
    super({ highWaterMark: 64 * 1024 });
    this.#send = isPipe(fd) ? toPipe(fd) : (data, done) => toFile(fd, data, 0, done);
  }

  override _write(data: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const bytes = this.statusLine?.around(data) ?? data;
    if (bytes.length === 0) done();
    else this.#send(bytes, done);
  }

  override _writev(parts: { chunk: Buffer }[], done: () => void): void {
    const data = Buffer.concat(parts.map(({ chunk }) => chunk));
    this._write(data, 'utf8', done);
  }

  /** Writes whole lines. Ends an unfinished line first, and then emits `lineEnd`. */
  writeLines(lines: string): void {
    if (this.lineOf === null) {
      this.write(lines);
      return;
    }
    this.lineOf = null;
    this.write(`\n${lines}`);
    this.emit('lineEnd');
  }

  /** Resolves once everything is written, at the latest after `limitMs`, because a reader may have stopped reading. */
  flush(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.write('', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/** Bytes of lines kept for a reader that has stopped reading. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** Writes whole lines, or drops them while the reader does not read. */
export function showLines(writer: OutputWriter, lines: string): void {
  if (writer.writableLength < MAX_UNREAD_BYTES) writer.writeLines(lines);
}

function isPipe(fd: number): boolean {
  const stat = fstatSync(fd);
  return stat.isFIFO() || stat.isSocket();
}

/**
 * Writes through Node's own stream, which never blocks on a pipe. A blocking write in a thread would prevent everything,
 * even `exit`, while the reader does not read.
 */
function toPipe(fd: 1 | 2): (data: Buffer, done: () => void) => void {
  const stream = fd === 1 ? process.stdout : process.stderr;
  stream.off('error', ignore).on('error', ignore); // once, however many servers the program starts
  return (data, done) => stream.write(data, () => done());
}

/** Takes an error, which `done` gets as well. */
function ignore(): void {}

/** Writes to a file, a terminal or a device. */
function toFile(fd: number, data: Buffer, offset: number, done: () => void): void {
  write(fd, data, offset, (error, written) => {
    if (error?.code === 'EAGAIN') setTimeout(() => toFile(fd, data, offset, done), RETRY_MS);
    else if (error !== null || offset + written === data.length) done();
    else toFile(fd, data, offset + written, done);
  });
}

const LINE_FEED = 0x0a;

/** Moves the cursor to the start of the line and clears the line. */
const CLEAR = '\r\x1b[2K';

/** A line of progress at the bottom of a terminal. Other output goes above it, and it never overwrites an unfinished line. */
export class StatusLine {
  /** The line, without its end; empty for none. Shown with the next write, which may be empty. */
  text = '';
  #isShown = false;
  #isMidLine = false;

  /** The bytes for the terminal: clears the line, writes `data`, and shows the line again. */
  around(data: Buffer): Buffer {
    if (data.length > 0) this.#isMidLine = data.at(-1) !== LINE_FEED;
    const before = this.#isShown ? CLEAR : '';
    const after = this.#isMidLine ? '' : this.text;
    this.#isShown = after !== '';
    return before === '' && after === ''
      ? data
      : Buffer.concat([Buffer.from(before), data, Buffer.from(after)]);
  }
}
