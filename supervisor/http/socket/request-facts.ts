/** Facts that every dialect needs of a request: its path, whether it has a body, when it is over. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ServeError } from '../../../protocol/errors.js';

/** The request's path as the client wrote it, without the query. A target that is no URL is given back as it is. */
export function writtenPath(url = '/'): string {
  const target = url.startsWith('/') ? url : withoutAuthority(url);
  const question = target.indexOf('?');
  return question < 0 ? target : target.slice(0, question);
}

/** The absolute form of a request's target (RFC 9112 section 3.2.2) names a host first. */
function withoutAuthority(url: string): string {
  if (!URL.canParse(url)) return url;
  const rest = url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * The path that the written one names, as routes are declared: every segment is percent-decoded once. An encoded slash
 * stays `%2F`, so that it never splits a segment. Null if an escape is broken or no UTF-8, or if there is no path at all.
 */
export function namedPath(written: string): string | null {
  if (!written.startsWith('/')) return written === '*' ? written : null;
  if (!written.includes('%')) return written;
  try {
    return decodeURIComponent(written.replace(/%2f/gi, '%252F'));
  } catch {
    return null;
  }
}

/** The error for a request whose path is null. */
export function pathMistake(): ServeError {
  return new ServeError(
    'SERVE_BAD_REQUEST',
    'The request names no path that can be read: it is no URL, or a percent escape in it is broken or no UTF-8.',
  );
}

/** Whether a body comes with the request, even an empty one. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Calls back when the reply is out, or the client has left. */
export function onceClosed(request: IncomingMessage, response: ServerResponse, callback: () => void): void {
  response.once('close', callback);
  if (response.socket !== null) return;
  // The request is pipelined behind another: its response has no connection yet, and would never hear that it closed.
  const { socket } = request;
  socket.setMaxListeners(0);
  socket.once('close', callback);
  response.once('close', () => socket.off('close', callback));
}

/** The request that came last on each connection. */
const lastRequests = new WeakMap<Socket, IncomingMessage>();

export function noteRequest(request: IncomingMessage): void {
  lastRequests.set(request.socket, request);
}

/** Whether no other request has come behind it: an answer that closes the connection would cost that one its own. */
export function isLastRequest(request: IncomingMessage): boolean {
  return lastRequests.get(request.socket) === request;
}
