/**
 * Splits a worker's output at line ends and follows its attribution marks. A line ends with `\n`, or with `\r` (a progress
 * bar) if it is shown as it grows. A record of a log is one text, whatever its lines. Bytes are kept unchanged, line ends
 * included.
 */
import {
  PRINT_MARK_END,
  printMarkPrefix,
  readPrintMark,
  type PrintOrigin,
} from '../../protocol/wire/print-mark.js';

/** Longer lines are passed on in parts of this size, so memory stays bounded. */
const MAX_LINE_BYTES = 64 * 1024;

/** As far as a record of a log is kept whole, such as a long chain of exceptions. */
const MAX_RECORD_BYTES = 1024 * 1024;

/** Longest mark: prefix, request id, level, logger, end. */
const MAX_MARK_BYTES = 512;

const LF = 0x0a;
const CR = 0x0d;

/** Gets a text of whole lines if it is `ended`, else a part of a line. */
type OnText = (text: Buffer, origin: PrintOrigin, ended: boolean) => void;

const UNKNOWN: PrintOrigin = { requestId: '', level: '', logger: '' };

export class LineSplitter {
  readonly #onText: OnText;
  readonly #prefix: Buffer | null;
  #rest: Buffer = Buffer.alloc(0);
  #origin = UNKNOWN;
  readonly #endsAtCr: boolean;

  /** `mark` is empty if the output has no marks. `endsAtCr`: `\r` ends a line; else only what stands behind the last one counts. */
  constructor(mark: string, endsAtCr: boolean, onText: OnText) {
    this.#endsAtCr = endsAtCr;
    this.#onText = onText;
    this.#prefix = mark === '' ? null : Buffer.from(printMarkPrefix(mark));
  }

  push(chunk: Buffer): void {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#prefix !== null) data = this.#followMarks(data, this.#prefix);
    this.#rest = this.#cutLongLine(this.#takeLines(data));
  }

  /** Whether a part of a line waits to be emitted. */
  get holdsText(): boolean {
    return this.#rest.length > 0;
  }

  /** Emits the unfinished line so far; an incomplete character at its end waits for the rest. */
  emitBegun(): void {
    const whole = wholeCharacters(this.#rest);
    const text = this.#rest.subarray(0, whole);
    this.#rest = this.#rest.subarray(whole);
    if (whole > 0) this.#onText(text, this.#origin, false);
  }

  /** Emits the rest as a line: the output has ended. */
  end(): void {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    if (rest.length > 0) this.#onText(rest, this.#origin, false);
  }

  /** Emits everything before each complete mark with the call of the previous mark; returns the rest. */
  #followMarks(data: Buffer, prefix: Buffer): Buffer {
    for (;;) {
      const start = data.indexOf(prefix);
      if (start < 0) return data;
      const end = data.indexOf(PRINT_MARK_END, start + prefix.length);
      if (end < 0) return data; // the rest of the mark has not arrived yet
      const before = this.#takeLines(data.subarray(0, start));
      if (before.length > 0) this.#onText(before, this.#origin, this.#origin.level !== '');
      this.#origin = readPrintMark(data.toString('utf8', start + prefix.length, end));
      data = data.subarray(end + 1);
    }
  }

  /** Emits all whole lines at once; returns the unfinished one. A record ends with the next mark. */
  #takeLines(data: Buffer): Buffer {
    if (this.#origin.level !== '') return data;
    const end = Math.max(data.lastIndexOf(LF), this.#endsAtCr ? data.lastIndexOf(CR) : -1) + 1;
    if (end > 0) this.#onText(data.subarray(0, end), this.#origin, true);
    return data.subarray(end);
  }

  /** Emits parts of a line that is too long to wait for its end. */
  #cutLongLine(line: Buffer): Buffer {
    let rest = line;
    if (!this.#endsAtCr && rest.length > MAX_LINE_BYTES) rest = rest.subarray(rest.lastIndexOf(CR, -2) + 1);
    const mostBytes = this.#origin.level === '' ? MAX_LINE_BYTES : MAX_RECORD_BYTES;
    while (rest.length > mostBytes + MAX_MARK_BYTES) {
      const cut = characterStart(rest, MAX_LINE_BYTES);
      this.#onText(rest.subarray(0, cut), this.#origin, false);
      rest = rest.subarray(cut);
    }
    return rest;
  }
}

/** Number of bytes before an incomplete UTF-8 character at the end of `data`; all bytes if there is none. */
function wholeCharacters(data: Buffer): number {
  const start = characterStart(data, data.length - 1);
  const first = data[start] ?? 0;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return start + length > data.length ? start : data.length;
}

/** Index of the first byte of the UTF-8 character at `at`. */
function characterStart(data: Buffer, at: number): number {
  let start = at;
  while (start > at - 3 && ((data[start] as number) & 0xc0) === 0x80) start -= 1;
  return start;
}
