/**
 * The note of the call that has begun: 16 bytes that a worker and the front share, on the worker's fd 5. It lies in the
 * kernel's page cache, so it outlives its writer, and it is written at once, so a kill leaves either the old note or
 * the new one. It wakes no process: the front reads it when a worker dies or a call takes long. As a message it cost a
 * second write per call, and the front a second read (docs/benchmarks.md).
 *
 *   0  u32  id of the call begun last, 0 before the first; calls sent before it have begun too
 *   4  u32  0
 *   8  f64  time in milliseconds of the monotonic clock
 */
export const BEGUN_NOTE_BYTES = 16;
const TIME_OFFSET = 8;

export interface BegunNote {
  /** Id of the call; 0 if no call has begun yet. */
  readonly id: number;
  /** Time of its beginning on the monotonic clock, which all processes of a machine share. */
  readonly atMs: number;
}

export function encodeBegunNote(target: Buffer, id: number, atMs: number): void {
  target.writeUInt32LE(id, 0);
  target.writeDoubleLE(atMs, TIME_OFFSET);
}

export function decodeBegunNote(bytes: Buffer): BegunNote {
  return { id: bytes.readUInt32LE(0), atMs: bytes.readDoubleLE(TIME_OFFSET) };
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
