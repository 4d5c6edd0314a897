/**
 * Holds a client that waits for a job. Waiting costs a timer and no work. A drain does not end it early: it waits for
 * such a job too, and fails it if that takes too long; an answer of "running" would only bring the next check at once.
 */
import type { KeptJob } from '../../../jobs/kept-jobs.js';
import type { RequestContext } from '../../request/request-context.js';
import { onceClosed } from '../../socket/request-facts.js';

/** The platform held a client this long; load balancers in front of a server time out after 60 s. */
export const HOLD_MS = 50_000;

/** Calls `goOn` when the job has ended or the time is up, and never if the client disconnects first. */
export function hold(
  { request, response }: RequestContext,
  kept: KeptJob,
  limitMs: number,
  goOn: () => void,
): void {
  if (response.destroyed) return;
  if (kept.ended || limitMs === 0) {
    goOn();
    return;
  }
  const stop = (): void => {
    clearTimeout(timer);
    stopListening();
  };
  const timer = setTimeout(() => {
    stop();
    goOn();
  }, limitMs);
  const stopListening = kept.onceEnded(() => {
    stop();
    goOn();
  });
  onceClosed(request, response, stop);
}
