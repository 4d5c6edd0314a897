/** What a worker prints: whose it is, and how it looks to a machine. */

export type StreamName = 'stdout' | 'stderr';

export interface PrintSource {
  /** The model's name while there are several to tell apart, else empty. */
  label(): string;
  readonly worker: number;
  readonly mark: string;
  /** The call that a print belongs to when the output does not say. */
  runningRequestId(): string;
}

export const LF = 0x0a;
export const CR = 0x0d;

/** A JSON line for each line that is not empty. */
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

/** Where the line that starts at `from` ends, its end not included. */
export function lineEnd(text: Buffer, from: number): number {
  let end = from;
  while (end < text.length && text[end] !== LF && text[end] !== CR) end += 1;
  return end;
}
