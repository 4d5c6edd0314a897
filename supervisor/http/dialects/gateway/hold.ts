/**
 * Holds those who wait for a job. Waiting costs a timer and no work. It needs no end at a drain: a job that has not ended
 * is waited for then too, and is failed if that takes too long. An answer of "running" would be followed by the next
 * question at once.
 */
import type { KeptJob } from '../../../jobs/kept-jobs.js';
import type { RequestContext } from '../../request/request-context.js';
import { onceClosed } from '../../socket/request-facts.js';

/** The platform held a client this long; load balancers in front of a server give up after 60 s. */
export const HOLD_MS = 50_000;

/** Goes on when the job has ended or the time is up, and never if the client leaves before. */
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
