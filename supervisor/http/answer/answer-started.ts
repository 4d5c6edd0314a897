/** Answers the caller of a background route; the job goes on. */
import { JOBS_PATH } from '../../../protocol/reserved-paths.js';
import type { JobRecord } from '../../jobs/kept-jobs.js';
import type { RequestContext } from '../request/request-context.js';
import { JOB_ID_HEADER, JOB_PAGE_HEADER } from '../access/client-headers.js';

export function answerStarted(context: RequestContext, { id, requestId }: JobRecord): void {
  const { backend, request, response, dialect } = context;
  const page = `${JOBS_PATH}/${id}`;
  const body = dialect.startedBody ?? `${JSON.stringify({ started: true, jobId: id, result: page })}\n`;
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Request-Id': requestId,
    ...dialect.headers?.(context),
    [JOB_ID_HEADER]: id,
    [JOB_PAGE_HEADER]: page,
  };
  if (backend.closing(request)) headers['Connection'] = 'close';
  response.writeHead(200, headers);
  response.end(body);
}
