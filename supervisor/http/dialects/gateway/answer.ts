/** Answers the gateway's requests, always with HTTP 200. */
import type { EndedRecord } from '../../../jobs/kept-jobs.js';
import type { RequestContext } from '../../request/request-context.js';
import { echoedHeaders } from '../../access/client-headers.js';
import { readResult } from '../../answer/job-answers.js';
import { serverTiming } from '../../answer/server-timing.js';
import { endedReply, type ReplyFields } from './reply.js';

/** Sends a reply. `ended`: the job whose times are reported in `Server-Timing`. */
export function sendReply(
  { backend, request, response, requestId }: RequestContext,
  pieces: readonly Buffer[],
  ended?: EndedRecord,
): void {
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': pieces.reduce((sum, piece) => sum + piece.length, 0),
    'X-Request-Id': requestId,
    ...echoedHeaders({ request }),
  };
  if (ended !== undefined) headers['Server-Timing'] = serverTiming(ended.end);
  if (backend.closing(request)) headers['Connection'] = 'close';
  response.writeHead(200, headers);
  response.cork(); // one gathered write
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
}

/** Sends the result of a job. Its output may have to be read first; the client may disconnect meanwhile. */
export async function sendEnded(
  context: RequestContext,
  record: EndedRecord,
  fields: ReplyFields = {},
): Promise<void> {
  const body = await readResult(context, record);
  const pieces = await endedReply(context.requestId, { ...record.end, body }, fields);
  if (!context.response.destroyed) sendReply(context, pieces, record);
}
