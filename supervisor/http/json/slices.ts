/**
 * Cuts long work on bytes in the front into slices, between which other requests are served. The work is a generator
 * that yields after each slice.
 */
import { isAscii } from 'node:buffer';
import { escapeNonAscii } from '../../../protocol/text/charsets.js';
import { turns } from '../socket/shared-turns.js';

/**
 * The slowest work, escaping non-Latin text as ASCII, takes some 10 ms for this many bytes; reading JSON takes 1 ms.
 */
export const SLICE_BYTES = 256 * 1024;

/** Writing it takes 1 ms, also if each character becomes an escape. */
const STRING_SLICE_CHARS = 64 * 1024;

/** Resolves with the result of the work, at once for work of one slice. */
export async function inSlices<Result>(work: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await turns.own();
  }
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

/** Writes text as a string of JSON. */
export function* writeString(text: string): Generator<void, Buffer[]> {
  const pieces = [Buffer.from('"')];
  for (let start = 0; start < text.length; start += STRING_SLICE_CHARS) {
    if (start > 0) yield;
    const slice = text.slice(start, start + STRING_SLICE_CHARS); // half of a pair becomes an escape, as the other half does
    pieces.push(Buffer.from(JSON.stringify(slice).slice(1, -1)));
  }
  return [...pieces, Buffer.from('"')];
}

/** Views of the bytes in order; no view cuts a UTF-8 character. */
export function* slicesOf(bytes: Buffer, sliceBytes = SLICE_BYTES): Generator<Buffer> {
  for (let start = 0; start < bytes.length;) {
    const end = characterStart(bytes, start + sliceBytes);
    yield bytes.subarray(start, end);
    start = end;
  }
}

/** Bytes of an answer that are written at once: what a client that does not read makes the front hold. */
export const SENT_SLICE_BYTES = 64 * 1024;

/** Pieces below it cost little. */
const SMALL_BYTES = 16 * 1024;

/** The pieces of an answer as its client takes them, the large ones in turn with other work. */
export async function* inTurns(pieces: Iterable<Buffer>): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    if (piece.length > SMALL_BYTES) await turns.own();
    yield piece;
  }
}

function characterStart(bytes: Buffer, at: number): number {
  let start = at;
  while (start > at - 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
