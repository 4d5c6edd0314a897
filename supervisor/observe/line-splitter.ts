/**
 * Cuts a worker's output into whole lines and follows its attribution marks. A line ends with `\n`, or with `\r`
 * (a progress bar). Bytes are kept as they came, line ends included.
 */
import { PRINT_MARK_END, printMarkPrefix } from '../../protocol/print-mark.js';

/** A line that never ends is passed on in parts of this size, so memory stays bounded. */
const MAX_LINE_BYTES = 64 * 1024;

const LF = 0x0a;
const CR = 0x0d;

/** `requestId` is null when the output does not say whose it is. `ended`: the line is whole. */
export type OnLine = (line: Buffer, requestId: string | null, ended: boolean) => void;

export class LineSplitter {
  readonly #onLine: OnLine;
  readonly #prefix: Buffer | null;
  #rest: Buffer = Buffer.alloc(0);
  #requestId: string | null = null;

  /** `mark` empty: the output carries no marks. */
  constructor(mark: string, onLine: OnLine) {
    this.#onLine = onLine;
    this.#prefix = mark === '' ? null : Buffer.from(printMarkPrefix(mark));
  }

  push(chunk: Buffer): void {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#prefix !== null) data = this.#followMarks(data, this.#prefix);
    this.#rest = this.#takeLines(data);
  }

  /** The output has ended: what is left is a line. */
  end(): void {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    if (rest.length > 0) this.#onLine(rest, this.#requestId, false);
  }

  /** Emits everything before each complete mark under the attribution that held there; returns what is left. */
  #followMarks(data: Buffer, prefix: Buffer): Buffer {
    for (;;) {
      const start = data.indexOf(prefix);
      if (start < 0) return data;
      const end = data.indexOf(PRINT_MARK_END, start + prefix.length);
      if (end < 0) return data; // the rest of the mark is on its way
      const before = this.#takeLines(data.subarray(0, start));
      if (before.length > 0) this.#onLine(before, this.#requestId, false);
      const requestId = data.toString('utf8', start + prefix.length, end);
      this.#requestId = requestId === '' ? null : requestId;
      data = data.subarray(end + 1);
    }
  }

  /** Emits whole lines; returns the unfinished one. */
  #takeLines(data: Buffer): Buffer {
    let start = 0;
    for (let end = lineEnd(data, 0); end >= 0; end = lineEnd(data, start)) {
      this.#onLine(data.subarray(start, end), this.#requestId, true);
      start = end;
    }
    let rest = data.subarray(start);
    // A mark may be cut anywhere; what could be the start of one stays.
    const keep = this.#prefix === null ? -1 : rest.lastIndexOf(this.#prefix[0] as number);
    while (rest.length > MAX_LINE_BYTES && !(keep >= 0 && keep < MAX_LINE_BYTES)) {
      const cut = characterStart(rest, MAX_LINE_BYTES);
      this.#onLine(rest.subarray(0, cut), this.#requestId, false);
      rest = rest.subarray(cut);
    }
    return rest;
  }
}

/** The start of the UTF-8 character that holds byte `at`. */
function characterStart(data: Buffer, at: number): number {
  let start = at;
  while (start > at - 3 && ((data[start] as number) & 0xc0) === 0x80) start -= 1;
  return start;
}

/** Index just behind the next line end, or -1. `\r\n` is one end; a `\r` at the very end waits for its `\n`. */
function lineEnd(data: Buffer, from: number): number {
  const lf = data.indexOf(LF, from);
  const cr = data.indexOf(CR, from);
  if (cr < 0 || (lf >= 0 && lf < cr)) return lf < 0 ? -1 : lf + 1;
  return data[cr + 1] === LF ? cr + 2 : cr + 1;
}
