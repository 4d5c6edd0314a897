/**
 * The note of the call that has begun: 16 bytes that a worker and the front share, on the worker's fd 5. It lies in the
 * kernel's page cache, so it outlives its writer, and it is written at once, so a kill leaves either the old note or
 * the new one. It wakes no process: the front reads it when a worker dies or a call takes long. As a message it cost a
 * second write per call, and the front a second read (docs/benchmarks.md).
 *
 *   0  u32  id of the call begun last, 0 before the first; calls sent before it have begun too
 *   4  u32  0
 *   8  f64  time in milliseconds of the monotonic clock
 *
 * Behind it, a worker that runs several calls at the same time keeps an entry of the same form for each of them, because
 * its note has the time of the last one only. All of it fits into one page.
 */
export const BEGUN_NOTE_BYTES = 16;
const TIME_OFFSET = 8;

export interface BegunNote {
  /** Id of the call; 0 if no call has begun yet. */
  readonly id: number;
  /** Time of its beginning on the monotonic clock, which all processes of a machine share. */
  readonly atMs: number;
  /** The times of the calls that have an entry, by id; left out if there are no entries. */
  readonly times?: ReadonlyMap<number, number>;
}

/** Bytes of the note of a worker that runs so many calls at the same time. */
export function begunNoteBytes(concurrency: number): number {
  return concurrency === 1 ? BEGUN_NOTE_BYTES : BEGUN_NOTE_BYTES * (1 + concurrency);
}

/** Writes a note, or an entry behind it, at this offset. */
export function encodeBegunNote(target: Buffer, id: number, atMs: number, offset = 0): void {
  target.writeUInt32LE(id, offset);
  target.writeDoubleLE(atMs, offset + TIME_OFFSET);
}

/** Reads a note and all entries behind it. */
export function decodeBegunNote(bytes: Buffer): BegunNote {
  const note = decodeAt(bytes, 0);
  if (bytes.length === BEGUN_NOTE_BYTES) return note;
  const times = new Map<number, number>();
  for (let offset = BEGUN_NOTE_BYTES; offset < bytes.length; offset += BEGUN_NOTE_BYTES) {
    const { id, atMs } = decodeAt(bytes, offset);
    times.set(id, atMs);
  }
  return { ...note, times };
}

function decodeAt(bytes: Buffer, offset: number): BegunNote {
  return { id: bytes.readUInt32LE(offset), atMs: bytes.readDoubleLE(offset + TIME_OFFSET) };
}

/** Monotonic time minus `performance.now()`, which counts from the start of its process; exact within microseconds. */
export const MONOTONIC_OFFSET_MS = monotonicOffsetMs();

/** Uses the closest of several readings, because the process may be suspended between two clocks. */
function monotonicOffsetMs(): number {
  process.hrtime(); // the first call of each is slow
  performance.now();
  let offsetMs = 0;
  let closestMs = Infinity;
  for (let reading = 0; reading < 5; reading += 1) {
    const beforeMs = performance.now();
    const [seconds, nanoseconds] = process.hrtime();
    const afterMs = performance.now();
    if (afterMs - beforeMs >= closestMs) continue;
    closestMs = afterMs - beforeMs;
    offsetMs = seconds * 1e3 + nanoseconds / 1e6 - (beforeMs + afterMs) / 2;
  }
  return offsetMs;
}
