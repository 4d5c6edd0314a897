/**
 * How many calls beyond the running one a worker may hold, so that it never idles for a pipe round trip.
 *
 * The gap to cover is one turn of the front's event loop under load, 1 to 2 ms at 32 connections, not the bare
 * 17 us of the pipe (docs/benchmarks.md, "Send-ahead"). Enough calls go ahead to fill that time by predicted
 * run time; none when calls are long: there the gap is below 0.4% of a call, while a call sent ahead could sit
 * behind a slow one with another worker free.
 */
import type { ServiceTime } from './service-time.js';

/** How many calls may follow the running one into a worker, by what is known of this model's calls. */
export type SendAhead = (service: ServiceTime) => number;

const COVER_MS = 2;
const MAX_AHEAD = 64;

/** Nothing is sent ahead behind a call that runs longer than this: a slow one, or a stream that nobody reads. */
export const LONG_CALL_MS = 25;

/** 0 before anything is known, and when any recent call was long. */
export function sendAhead(service: ServiceTime): number {
  const { meanMs, slowMs } = service;
  if (meanMs === null || slowMs > LONG_CALL_MS) return 0;
  return Math.min(MAX_AHEAD, Math.ceil(COVER_MS / Math.max(meanMs, COVER_MS / MAX_AHEAD)));
}
