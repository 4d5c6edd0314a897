/**
 * Finds clients that read too slowly, by the bytes that their side takes and by nothing else. Pure: the caller passes
 * how many bytes were taken and how much time passed in which more could have been.
 */

/** A client that has not taken all of its answers. */
export interface Reader {
  /** Answer bytes that are held for it. */
  unsentBytes: number;
  /** Bytes that it took since its answers began to wait for it. */
  takenBytes: number;
  /** Time in which it could have taken more bytes. */
  waitedMs: number;
  /** The remaining time for which it may take nothing at all. */
  patienceMs: number;
}

/**
 * The minimum average rate of a reader, the same as for a request body. A client on the slowest line in use takes ten
 * times as much; one that takes less holds megabytes for hours.
 */
const LEAST_BYTES_PER_S = 1000;

/** Bytes that a new reader is credited with before its rate can be measured: 1 MB within a second. */
const HEAD_START_BYTES = 1_000_000;
const HEAD_START_MS = 1000;

/**
 * Time uses up a reader's patience, and bytes restore it at the minimum rate, up to the stall timeout. So a client that
 * keeps to that rate never runs out of patience, although a kernel takes bytes in lumps; a client that stops runs out
 * after that time.
 */
export function passTime(reader: Reader, elapsedMs: number, tookBytes: number, stallTimeoutMs: number): void {
  reader.takenBytes += tookBytes;
  reader.waitedMs += elapsedMs;
  const earnedMs = (tookBytes / LEAST_BYTES_PER_S) * 1000;
  reader.patienceMs = Math.min(stallTimeoutMs, reader.patienceMs - elapsedMs + earnedMs);
}

/** Returns the reader with the lowest rate; a new one counts as a fair one. Null if there are no readers. */
export function slowest<R extends Reader>(readers: Iterable<R>): R | null {
  let found: R | null = null;
  for (const reader of readers) if (found === null || rateOf(reader) < rateOf(found)) found = reader;
  return found;
}

function rateOf({ takenBytes, waitedMs }: Reader): number {
  return (takenBytes + HEAD_START_BYTES) / (waitedMs + HEAD_START_MS);
}
