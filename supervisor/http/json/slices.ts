/**
 * Cuts long work on bytes in the front into slices, between which other requests are served. The work is a generator
 * that yields after each slice; of all the work in progress, one slice is done in each turn of the event loop.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { escapeNonAscii } from '../../../protocol/text/ascii-json.js';
import { TopLevelScan, type ScannedBody } from './top-level-fields.js';

/**
 * The slowest work, escaping non-Latin text as ASCII, takes some 10 ms for this many bytes; reading JSON takes 1 ms.
 */
export const SLICE_BYTES = 256 * 1024;

/** Resolves with the result of the work, at once for work of one slice. */
export async function inSlices<Result>(work: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await nextTurn();
  }
}

const waiting: (() => void)[] = [];

/** Resolves in a later turn of the event loop, in which no other work of this kind goes on. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(resumeNext);
  });
}

function resumeNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(resumeNext);
}

/** Copies bytes into new memory. */
export function* copySlices(bytes: Buffer): Generator<void, Buffer> {
  const copy = Buffer.allocUnsafeSlow(bytes.length); // the system provides this memory only as it is filled
  let filled = 0;
  for (const slice of slicesOf(bytes)) {
    filled += slice.copy(copy, filled);
    yield;
  }
  return copy;
}

/** Does what `scanTopLevelFields` does, in slices. */
export function* scanSlices(body: Buffer, wanted: readonly string[]): Generator<void, ScannedBody> {
  const scan = new TopLevelScan(body, wanted);
  for (;;) {
    const scanned = scan.step(SLICE_BYTES);
    if (scanned !== null) return scanned;
    yield;
  }
}

/** Whether the whole body is JSON in UTF-8. */
export function* checkJson(body: Buffer): Generator<void, boolean> {
  for (const slice of slicesOf(body)) {
    if (!isUtf8(slice)) return false;
    yield;
  }
  return (yield* scanSlices(body, [])).is !== 'malformed';
}

/**
 * Converts JSON text from UTF-8 to ASCII: views of the parts that are ASCII already, escaped copies of the others. Our
 * workers escape what they encode (worker/reply/encode-output.ts); JSON that an app wrote itself may not be escaped.
 */
export function* writeAscii(json: Buffer): Generator<void, Buffer[]> {
  const pieces: Buffer[] = [];
  for (const slice of slicesOf(json)) {
    pieces.push(isAscii(slice) ? slice : Buffer.from(escapeNonAscii(slice.toString())));
    yield;
  }
  return pieces;
}

/** Views of the bytes in order; no view cuts a UTF-8 character. */
export function* slicesOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length;) {
    const end = characterStart(bytes, start + SLICE_BYTES);
    yield bytes.subarray(start, end);
    start = end;
  }
}

function characterStart(bytes: Buffer, at: number): number {
  let start = at;
  while (start > at - 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
