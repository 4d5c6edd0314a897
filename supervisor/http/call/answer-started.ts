/** Answers the caller of a background route at once; its job lives on. */
import type { Job } from '../../dispatch/job.js';
import type { KeptJob } from '../../jobs/kept-jobs.js';
import type { Ask } from './ask.js';

/** This header of the answer names the job, for `GET /_k/jobs/:id`. */
export const JOB_ID_HEADER = 'X-Banana-Job-Id';

const BODY = '{"started":true}\n';

export function answerStarted(ask: Ask, job: Job): KeptJob {
  const { backend, request, response, dialect } = ask;
  const kept = backend.jobs.keep(job);
  kept.onceEnded(() => backend.onSettled(ask, job, 200, kept.error));
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': BODY.length,
    'X-Request-Id': job.call.requestId,
    ...dialect.headers?.(ask),
    [JOB_ID_HEADER]: kept.id,
  };
  if (backend.closing(request)) headers['Connection'] = 'close';
  response.writeHead(200, headers);
  response.end(BODY);
  return kept;
}
