/** Answers the caller of a background route; the job goes on. */
import type { KeptJob } from '../../jobs/kept-jobs.js';
import { httpStatus } from '../socket/http-status.js';
import type { RequestContext } from '../request/request-context.js';
import { JOB_ID_HEADER } from '../access/client-headers.js';

const BODY = '{"started":true}\n';

/** Status for the access log of a job whose client was answered earlier: the one its result would have had. */
export function statusOf({ error }: KeptJob): number {
  return error === null ? 200 : httpStatus(error.code);
}

export function answerStarted(context: RequestContext, kept: KeptJob): void {
  const { backend, request, response, dialect } = context;
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': BODY.length,
    'X-Request-Id': kept.requestId,
    ...dialect.headers?.(context),
    [JOB_ID_HEADER]: kept.id,
  };
  if (backend.closing(request)) headers['Connection'] = 'close';
  response.writeHead(200, headers);
  response.end(BODY);
}
