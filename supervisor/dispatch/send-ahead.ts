/**
 * Decides how many calls behind the running one a worker may hold, so that it never idles for a pipe round trip.
 *
 * The gap to cover is one turn of the front's event loop under load, 1 to 2 ms at 32 connections, not the bare
 * 17 us of the pipe, and the time that the bytes take: a worker deep in a call reads nothing, so a large body, and
 * the answer before it, move while nothing runs (docs/benchmarks.md, "Send-ahead"). Enough calls go ahead to fill
 * the gap by predicted run time; none when calls are long: there the gap is a small part of a call, while a call
 * sent ahead could sit behind a slow one with another worker free.
 */
import type { ServiceTime } from './service-time.js';

/** Returns the number of calls that may follow the running one into one of so many workers, from the measured run times. */
export type SendAhead = (service: ServiceTime, workers: number) => number;

const TURN_MS = 2;
const MAX_AHEAD = 64;

/** Rate of a pipe between two event loops that take turns; 1 MB there and back took a worker 4 to 6 ms. */
const BYTES_PER_MS = 400_000;

/** A call that runs longer than this is long, if it has few bytes to move. */
const LONG_CALL_MS = 25;

/** The same if there is no other worker: the next call waits for this one in any case. */
const LONG_CALL_ALONE_MS = 50;

/** Moving the bytes of a long call takes less than this part of it. */
const SMALL_GAP = 0.02;

/** A call so many times longer than the mean is long, whatever it moves: nothing should wait behind it. */
const FAR_ABOVE_MEAN = 2;

/** Most bytes of calls sent ahead to a worker: the bounds of the queue do not count them. */
const AHEAD_BYTES = 4_000_000;

/** Nothing is sent ahead behind a call that runs longer than this: a slow one, or a stream without a reader. */
export function longCallMs({ meanMs, meanBytes }: ServiceTime, workers: number): number {
  const worthwhileMs = meanBytes / BYTES_PER_MS / SMALL_GAP;
  const longMs = workers === 1 ? LONG_CALL_ALONE_MS : LONG_CALL_MS;
  return Math.max(longMs, Math.min(worthwhileMs, FAR_ABOVE_MEAN * (meanMs ?? 0)));
}

/** Time that a worker would idle between two runs if nothing were sent ahead. */
export function gapToCoverMs({ meanBytes }: ServiceTime): number {
  return TURN_MS + meanBytes / BYTES_PER_MS;
}

/** Calls to send ahead: 0 before anything is known, and when any recent call was long. */
export function sendAhead(service: ServiceTime, workers: number): number {
  const { meanMs, slowMs, meanBytes } = service;
  if (meanMs === null || slowMs > longCallMs(service, workers)) return 0;
  const gapMs = gapToCoverMs(service);
  const fill = Math.ceil(gapMs / Math.max(meanMs, gapMs / MAX_AHEAD));
  return Math.min(MAX_AHEAD, fill, Math.max(1, Math.floor(AHEAD_BYTES / meanBytes)));
}

/**
 * Whether a batch may be sent ahead behind a running one. A single slow run does not prevent it, as it does for calls: a
 * batch is sent late, when the running one is about to end, so it hardly ever waits behind a slow one.
 */
export function batchMayGoAhead(service: ServiceTime, workers: number): boolean {
  return service.meanMs !== null && service.meanMs <= longCallMs(service, workers);
}
