/** Answers the caller of a background route; the job goes on. */
import { JOBS_PATH } from '../../../protocol/reserved-paths.js';
import type { KeptJob } from '../../jobs/kept-jobs.js';
import type { RequestContext } from '../request/request-context.js';
import { JOB_ID_HEADER, JOB_PAGE_HEADER } from '../access/client-headers.js';
import { statusOf } from './house-error.js';

/** Status for the log of an ended job whose client was answered earlier: the one its own answer would have had. */
export function keptStatus({ error, result }: Pick<KeptJob, 'error' | 'result'>): number {
  return error === null ? (result?.head.status ?? 200) : statusOf(error);
}

export function answerStarted(context: RequestContext, kept: KeptJob): void {
  const { backend, request, response, dialect } = context;
  const page = `${JOBS_PATH}/${kept.id}`;
  const body = dialect.startedBody ?? `${JSON.stringify({ started: true, jobId: kept.id, result: page })}\n`;
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Request-Id': kept.requestId,
    ...dialect.headers?.(context),
    [JOB_ID_HEADER]: kept.id,
    [JOB_PAGE_HEADER]: page,
  };
  if (backend.closing(request)) headers['Connection'] = 'close';
  response.writeHead(200, headers);
  response.end(body);
}
