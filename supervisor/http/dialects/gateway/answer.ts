/** Answers the gateway's requests: with HTTP 200, whatever the body says. */
import type { IncomingMessage } from 'node:http';
import type { ServeError } from '../../../../protocol/errors.js';
import type { KeptJob } from '../../../jobs/kept-jobs.js';
import type { Ask } from '../../call/ask.js';
import type { Backend } from '../../call/backend.js';
import { failureReply } from './reply.js';
import { answerUnread, closesAfter } from '../../socket/refuse.js';
import { serverTiming } from '../../call/reply-sink.js';
import { bananaIdHeader } from '../../socket/request-id.js';

/** Sends a reply. `ended` is the job whose times it tells. */
export function answer(
  { backend, request, response, requestId }: Ask,
  pieces: readonly Buffer[],
  ended?: KeptJob,
): void {
  response.writeHead(200, replyHeaders(backend, request, requestId, pieces, ended));
  response.cork(); // one gathered write
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
}

/** Sends a failure to a client that may still be sending its body. */
export function turnAway({ backend, request, response, requestId }: Ask, error: ServeError): void {
  const pieces = failureReply(requestId, error);
  const closes = backend.closing(request) || closesAfter(request, error);
  const headers = replyHeaders(backend, request, requestId, pieces);
  if (closes) headers['Connection'] = 'close';
  answerUnread(request, response, { status: 200, headers, body: Buffer.concat(pieces), closes });
  backend.onRefused(request, requestId, error);
}

function replyHeaders(
  backend: Backend,
  request: IncomingMessage,
  requestId: string,
  pieces: readonly Buffer[],
  ended?: KeptJob,
): Record<string, string | number> {
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': pieces.reduce((sum, piece) => sum + piece.length, 0),
    'X-Request-Id': requestId,
    ...bananaIdHeader(request),
  };
  if (ended !== undefined) headers['Server-Timing'] = serverTiming(ended);
  if (backend.closing(request)) headers['Connection'] = 'close';
  return headers;
}
