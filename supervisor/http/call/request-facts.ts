/** What every dialect asks of a request: its path, its call for a worker, its end. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { joinHeaderLines } from '../../../protocol/header-lines.js';
import type { Format } from '../../../protocol/messages.js';
import type { JobCall } from '../../dispatch/job.js';

export interface CallTarget {
  readonly route: string;
  /** Of the request, as `pathOf` reads it. */
  readonly path: string;
  readonly format: Format;
}

/** Calls back when the reply is out, or the client has left. */
export function onceClosed(request: IncomingMessage, response: ServerResponse, callback: () => void): void {
  response.once('close', callback);
  if (response.socket !== null) return;
  // Pipelined behind another call: this response has no connection yet, and would never hear that it closed.
  const { socket } = request;
  socket.setMaxListeners(0);
  socket.once('close', callback);
  response.once('close', () => socket.off('close', callback));
}

export function describeCall(
  request: IncomingMessage,
  requestId: string,
  { route, path, format }: CallTarget,
  deadlineMs: number | null,
  bodyBytes: number,
): JobCall {
  const { headers, rawHeaders } = request;
  const url = request.url ?? '/';
  const question = url.indexOf('?');
  return {
    id: 0,
    bodyBytes,
    requestId,
    route,
    path,
    query: question < 0 ? '' : url.slice(question + 1),
    format,
    contentType: headers['content-type'] ?? '',
    accept: headers.accept ?? '',
    deadlineMs: deadlineMs === null ? null : Date.now() + deadlineMs,
    headers: joinHeaderLines(rawHeaders),
  };
}

/** The request's path as written, without the query; of the absolute form (RFC 9112 section 3.2.2) too. */
export function pathOf(url = '/'): string {
  if (!url.startsWith('/')) return URL.canParse(url) ? new URL(url).pathname : url;
  const question = url.indexOf('?');
  return question < 0 ? url : url.slice(0, question);
}
