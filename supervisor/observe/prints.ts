/** Attribution of a worker's prints, and their form in JSON. */

export type StreamName = 'stdout' | 'stderr';

export interface PrintSource {
  /** The model's name if the server has several models, else empty. */
  label(): string;
  readonly worker: number;
  readonly mark: string;
  /** The call of a print without a mark; empty if unknown. */
  runningRequestId(): string;
  /** The same, or the call that has just ended: its print may arrive after its answer. */
  lastRequestId(): string;
}

/** Gets a copy of everything that workers print, apart from what is shown. */
export interface PrintReceiver {
  /** Returns a receiver for the bytes of one worker's stream. */
  of(name: StreamName, source: PrintSource): { push(chunk: Buffer): void; end(): void };
}

export const LF = 0x0a;
export const CR = 0x0d;

/** Returns a JSON line for each non-empty line. */
export function wrapped(
  stream: StreamName,
  text: Buffer,
  source: PrintSource,
  requestId: string | null,
): string {
  const label = source.label();
  const record = {
    time: new Date().toISOString(),
    stream,
    ...(label === '' ? {} : { model: label }),
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

/** Index of the line end (or the end of `text`) of the line that starts at `from`. */
export function lineEnd(text: Buffer, from: number): number {
  let end = from;
  while (end < text.length && text[end] !== LF && text[end] !== CR) end += 1;
  return end;
}
