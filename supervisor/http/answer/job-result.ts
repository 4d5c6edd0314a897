/** Reads the result of a job for one answer. */
import type { JobRecord } from '../../jobs/kept-jobs.js';
import type { RequestContext } from '../request/request-context.js';
import { turns } from '../socket/shared-turns.js';
import { onceOver } from '../socket/watched-response.js';

/**
 * Resolves with the body of the job's answer, null if it is not kept, when it is this answer's turn. Others may read the
 * same bytes: they are held until the last of these answers is over. @throws SERVE_JOBS_UNAVAILABLE
 */
export async function readResult(
  { backend, request, response }: RequestContext,
  record: JobRecord,
): Promise<Buffer | null> {
  const { body, release } = backend.jobs.holdResult(record);
  onceOver(request, response, release);
  const bytes = await body;
  await turns.own(); // one read may be what thousands wait for
  return bytes;
}
