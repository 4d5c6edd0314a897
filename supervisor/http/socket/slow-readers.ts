/**
 * Who reads too slowly, judged by the bytes that a client's side takes and by nothing else. Pure: the caller says how
 * much was taken and how much time passed in which more could have been.
 */

/** A client that has not taken all of its answers. */
export interface Reader {
  /** Answer bytes that are held for it. */
  unsentBytes: number;
  /** Bytes that it took since its answers began to wait. */
  takenBytes: number;
  /** Time in which it could have taken more. */
  waitedMs: number;
  /** How much longer it may take nothing at all. */
  patienceMs: number;
}

/**
 * The least average rate of a reader, as of a request body. A client on the slowest line in use takes ten times as
 * much; one that takes less holds megabytes for hours.
 */
const LEAST_BYTES_PER_S = 1000;

/** What a reader is taken to have read before it could show how fast it is: 1 MB within a second. */
const HEAD_START_BYTES = 1_000_000;
const HEAD_START_MS = 1000;

/**
 * Time uses up a reader's patience, and bytes give it back at the least rate, up to the stall timeout: so whoever keeps
 * to that rate is never out of it, even though a kernel takes bytes in lumps, and who stops is, after that time.
 */
export function passTime(reader: Reader, elapsedMs: number, tookBytes: number, stallTimeoutMs: number): void {
  reader.takenBytes += tookBytes;
  reader.waitedMs += elapsedMs;
  const earnedMs = (tookBytes / LEAST_BYTES_PER_S) * 1000;
  reader.patienceMs = Math.min(stallTimeoutMs, reader.patienceMs - elapsedMs + earnedMs);
}

/** The reader that took least for its time; a new one counts as a fair one. Null if there is none. */
export function slowest<R extends Reader>(readers: Iterable<R>): R | null {
  let found: R | null = null;
  for (const reader of readers) if (found === null || rateOf(reader) < rateOf(found)) found = reader;
  return found;
}

function rateOf({ takenBytes, waitedMs }: Reader): number {
  return (takenBytes + HEAD_START_BYTES) / (waitedMs + HEAD_START_MS);
}
