/** Answers the callers of jobs: at the start, when one has ended, and with its result. */
import { JOBS_PATH } from '../../../protocol/reserved-paths.js';
import type { JobRecord } from '../../jobs/job-record.js';
import { JOB_ID_HEADER, JOB_PAGE_HEADER } from '../access/client-headers.js';
import type { RequestContext } from '../request/request-context.js';
import { onceClosed } from '../socket/request-facts.js';
import { sendPieces } from './own-answers.js';
import { turns } from '../socket/shared-turns.js';
import { onceOver } from '../socket/unsent-answers.js';

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
  const job = { 'X-Request-Id': requestId, [JOB_ID_HEADER]: id, [JOB_PAGE_HEADER]: pageOf(id) };
  const headers = { 'Content-Type': 'application/json', ...more, ...job };
  sendPieces(context, status, headers, [Buffer.from(body)]);
}

/** Banana's platform held a client this long; load balancers in front of a server time out after 60 s. */
export const HOLD_MS = 50_000;

/**
 * Holds a client that waits for a job. A drain does not end a wait early: it waits for such a job too, and fails it if that
 * takes too long; an answer of "running" would only bring the next question at once.
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

/**
 * Resolves with the body of the job's answer, null if it is not kept, when it is this answer's turn. Others may read the
 * same bytes: they are held until the last of these answers is over. @throws SERVE_JOBS_UNAVAILABLE
 */
export async function readResult(
  { backend, request, response }: RequestContext,
  record: JobRecord,
): Promise<Buffer | null> {
  const { body, release } = backend.jobs.results.hold(record.id, record.end?.result?.bytes ?? 0);
  onceOver(request, response, release);
  const bytes = await body;
  await turns.own(); // one read may be what thousands wait for
  return bytes;
}
