/**
 * Cuts a worker's output at line ends and follows its attribution marks. A line ends with `\n`, or with `\r` (a
 * progress bar). Bytes are kept as they came, line ends included.
 */
import { PRINT_MARK_END, printMarkPrefix } from '../../protocol/wire/print-mark.js';

/** A line that never ends is passed on in parts of this size, so memory stays bounded. */
const MAX_LINE_BYTES = 64 * 1024;

/** No mark is longer: prefix, a request id, the end. */
const MAX_MARK_BYTES = 256;

const LF = 0x0a;
const CR = 0x0d;

/** `requestId` is null when the output does not say whose it is. `ended`: whole lines; else a part of one. */
export type OnText = (text: Buffer, requestId: string | null, ended: boolean) => void;

export class LineSplitter {
  readonly #onText: OnText;
  readonly #prefix: Buffer | null;
  #rest: Buffer = Buffer.alloc(0);
  #requestId: string | null = null;

  /** `mark` empty: the output carries no marks. */
  constructor(mark: string, onText: OnText) {
    this.#onText = onText;
    this.#prefix = mark === '' ? null : Buffer.from(printMarkPrefix(mark));
  }

  push(chunk: Buffer): void {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#prefix !== null) data = this.#followMarks(data, this.#prefix);
    this.#rest = this.#cutLongLine(this.#takeLines(data));
  }

  /** Whether a line has begun that was not emitted yet. */
  get holdsText(): boolean {
    return this.#rest.length > 0;
  }

  /** Emits the line that has begun, as far as it has come; the rest of a character that is cut waits for its end. */
  emitBegun(): void {
    const whole = wholeCharacters(this.#rest);
    const text = this.#rest.subarray(0, whole);
    this.#rest = this.#rest.subarray(whole);
    if (whole > 0) this.#onText(text, this.#requestId, false);
  }

  /** The output has ended: what is left is a line. */
  end(): void {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    if (rest.length > 0) this.#onText(rest, this.#requestId, false);
  }

  /** Emits everything before each complete mark under the attribution that held there; returns what is left. */
  #followMarks(data: Buffer, prefix: Buffer): Buffer {
    for (;;) {
      const start = data.indexOf(prefix);
      if (start < 0) return data;
      const end = data.indexOf(PRINT_MARK_END, start + prefix.length);
      if (end < 0) return data; // the rest of the mark is on its way
      const before = this.#takeLines(data.subarray(0, start));
      if (before.length > 0) this.#onText(before, this.#requestId, false);
      const requestId = data.toString('utf8', start + prefix.length, end);
      this.#requestId = requestId === '' ? null : requestId;
      data = data.subarray(end + 1);
    }
  }

  /** Emits all whole lines at once; returns the unfinished one. */
  #takeLines(data: Buffer): Buffer {
    const end = Math.max(data.lastIndexOf(LF), data.lastIndexOf(CR)) + 1;
    if (end > 0) this.#onText(data.subarray(0, end), this.#requestId, true);
    return data.subarray(end);
  }

  /** Emits parts of a line that is too long to wait for its end. */
  #cutLongLine(line: Buffer): Buffer {
    let rest = line;
    while (rest.length > MAX_LINE_BYTES + MAX_MARK_BYTES) {
      const cut = characterStart(rest, MAX_LINE_BYTES);
      this.#onText(rest.subarray(0, cut), this.#requestId, false);
      rest = rest.subarray(cut);
    }
    return rest;
  }
}

/** How many bytes come before a UTF-8 character that the end of `data` cuts; all of them if it cuts none. */
function wholeCharacters(data: Buffer): number {
  const start = characterStart(data, data.length - 1);
  const first = data[start] ?? 0;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return start + length > data.length ? start : data.length;
}

/** The start of the UTF-8 character that holds byte `at`. */
function characterStart(data: Buffer, at: number): number {
  let start = at;
  while (start > at - 3 && ((data[start] as number) & 0xc0) === 0x80) start -= 1;
  return start;
}
