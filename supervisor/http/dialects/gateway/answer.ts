/** Answers the gateway's requests: with HTTP 200, whatever the body says. */
import type { KeptJob } from '../../../jobs/kept-jobs.js';
import type { RequestContext } from '../../request/request-context.js';
import { sentBack } from '../../access/banana-clients.js';
import { serverTiming } from '../../answer/server-timing.js';
import { endedReply, type ReplyFields } from './reply.js';

/** Sends a reply. `ended` is the job whose times it tells. */
export function sendReply(
  { backend, request, response, requestId }: RequestContext,
  pieces: readonly Buffer[],
  ended?: KeptJob,
): void {
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': pieces.reduce((sum, piece) => sum + piece.length, 0),
    'X-Request-Id': requestId,
    ...sentBack({ request }),
  };
  if (ended !== undefined) headers['Server-Timing'] = serverTiming(ended);
  if (backend.closing(request)) headers['Connection'] = 'close';
  response.writeHead(200, headers);
  response.cork(); // one gathered write
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
}

/** Sends what came of a job. The output may have to be read first; meanwhile the client may leave. */
export function sendEnded(context: RequestContext, kept: KeptJob, fields: ReplyFields = {}): void {
  void endedReply(context.requestId, kept, fields).then((pieces) => {
    if (!context.response.destroyed) sendReply(context, pieces, kept);
  });
}
