/**
 * Holds a client that waits for a job. A drain does not end a wait early: it waits for such a job too, and fails it if that
 * takes too long; an answer of "running" would only bring the next question at once.
 */
import type { JobRecord } from '../../jobs/kept-jobs.js';
import type { RequestContext } from '../request/request-context.js';
import { onceClosed } from '../socket/request-facts.js';
import { turns } from '../socket/shared-turns.js';

/** Banana's platform held a client this long; load balancers in front of a server time out after 60 s. */
export const HOLD_MS = 50_000;

/**
 * Resolves with the job when it has ended, else as it is after `limitMs`; with null if it is unknown, or if the client has
 * disconnected: then nothing can be sent.
 */
export async function whenEnded(
  { backend, request, response }: RequestContext,
  id: string,
  limitMs: number,
): Promise<JobRecord | null> {
  if (response.destroyed) return null;
  const record = await backend.jobs.whenEnded(id, limitMs, (stop) => onceClosed(request, response, stop));
  await turns.own(); // one end may be what thousands wait for
  return response.destroyed ? null : record;
}
