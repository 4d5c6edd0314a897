/** Answers the caller of a job that is stored; the job goes on. */
import { JOBS_PATH } from '../../../protocol/reserved-paths.js';
import type { JobRecord } from '../../jobs/kept-jobs.js';
import type { RequestContext } from '../request/request-context.js';
import { JOB_ID_HEADER, JOB_PAGE_HEADER } from '../access/client-headers.js';

/** Answers the caller of a background route: 200, in the words of the contract with its clients if there is one. */
export function answerStarted(context: RequestContext, accepted: JobRecord): void {
  answer(context, 200, accepted, context.dialect.startedBody ?? startedBody(accepted));
}

/** Answers a caller that has asked for it, whatever the route (RFC 7240 section 4.1). */
export function answerAccepted(context: RequestContext, accepted: JobRecord): void {
  answer(context, 202, accepted, startedBody(accepted), { 'Preference-Applied': 'respond-async' });
}

function startedBody({ id }: JobRecord): string {
  return `${JSON.stringify({ started: true, jobId: id, result: pageOf(id) })}\n`;
}

function pageOf(id: string): string {
  return `${JOBS_PATH}/${id}`;
}

function answer(
  context: RequestContext,
  status: number,
  { id, requestId }: JobRecord,
  body: string,
  more: Readonly<Record<string, string>> = {},
): void {
  const { backend, request, response, dialect } = context;
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Request-Id': requestId,
    ...dialect.headers?.(context),
    ...more,
    [JOB_ID_HEADER]: id,
    [JOB_PAGE_HEADER]: pageOf(id),
  };
  if (backend.closing(request)) headers['Connection'] = 'close';
  response.writeHead(status, headers);
  response.end(body);
}
