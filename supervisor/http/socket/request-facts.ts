/** Facts about a request that every dialect needs: its path, its id, whether it has a body, when it is over. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ServeError } from '../../../protocol/errors.js';
import { newRequestId } from '../../dispatch/call.js';
import { currentResponse } from './node-internals.js';

/**
 * Returns the request's path as the client wrote it, without the query. A target that is not a URL is returned
 * unchanged.
 */
export function writtenPath(url = '/'): string {
  const target = url.startsWith('/') ? url : withoutAuthority(url);
  const question = target.indexOf('?');
  return question < 0 ? target : target.slice(0, question);
}

/** Removes scheme and host from the absolute form of a request's target (RFC 9112 section 3.2.2). */
function withoutAuthority(url: string): string {
  if (!URL.canParse(url)) return url;
  const rest = url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * Decodes a path as written to a path as routes are declared: every segment is percent-decoded once. An encoded slash
 * stays `%2F`, so that it never splits a segment. Null if an escape is broken or not UTF-8, or if there is no path at
 * all.
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

/** Returns the query of a request, without its question mark. */
export function queryOf({ request: { url = '' } }: { readonly request: IncomingMessage }): string {
  const question = url.indexOf('?');
  return question < 0 ? '' : url.slice(question + 1);
}

/** Whether the request asks for a page. */
export function isRead({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The error for a request whose path is null. */
export function pathMistake(): ServeError {
  return new ServeError(
    'SERVE_BAD_REQUEST',
    'The path of the request cannot be read: it is not a valid URL, or a percent escape in it is broken or not UTF-8.',
  );
}

/** An id that matches can be written to a header, a log line or a file name unchanged. */
const SAFE = /^[\w.:@/+=-]{1,128}$/;

/**
 * Returns the request's id. `names`: further headers in which its client may send one, in lower case; `X-Request-Id`
 * takes precedence. `inBody`: the id in the body, in dialects that have one.
 */
export function requestIdOf(
  headers: IncomingHttpHeaders,
  names: readonly string[] = [],
  inBody?: string | null,
): string {
  return safeId(headers['x-request-id']) ?? firstId(headers, names) ?? safeId(inBody) ?? newRequestId();
}

/** Returns the first safe id in these headers; null if there is none. */
export function firstId(headers: IncomingHttpHeaders, names: readonly string[]): string | null {
  for (const name of names) {
    const id = safeId(headers[name]);
    if (id !== null) return id;
  }
  return null;
}

/** Returns the id if it is safe in a header, a log line and a file name; else null. */
export function safeId(id: string | string[] | null | undefined): string | null {
  return typeof id === 'string' && SAFE.test(id) ? id : null;
}

/**
 * The address of the client's end of the connection; `unix` on a unix socket. Node keeps it for a connection that is gone if
 * it was read before.
 */
export function clientOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '') ?? 'unix';
}

/** Whether the request has a body, even an empty one. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Calls back when the reply has been sent or the client has disconnected. */
export function onceClosed(request: IncomingMessage, response: ServerResponse, callback: () => void): void {
  response.once('close', callback);
  if (response.socket !== null) return;
  // The request is pipelined behind another: its response has no connection yet, and would not emit `close`.
  const { socket } = request;
  socket.setMaxListeners(0);
  socket.once('close', callback);
  response.once('close', () => socket.off('close', callback));
}

/** Returns a signal that is aborted when the client disconnects before it has an answer. */
export function abortedOnDisconnect(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const left = new AbortController();
  onceClosed(request, response, () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
}

/**
 * Calls back once every complete request on this connection is answered: what follows must not come between. A request
 * with an incomplete body is the last one of its connection, and is not waited for.
 */
export function onceAnswered(socket: Socket, callback: () => void): void {
  if (socket.destroyed) return;
  const answer = currentResponse(socket);
  if (answer?.req.complete === true)
    answer.once('close', () => onceAnswered(socket, callback)); // by then the next response has taken its place
  else callback();
}

/** The latest request of each connection. */
export const lastRequests = new WeakMap<Socket, IncomingMessage>();

/** Whether no other request is pipelined behind it, which would lose its answer if this one closed the connection. */
export function isLastRequest(request: IncomingMessage): boolean {
  return lastRequests.get(request.socket) === request;
}

/**
 * Connections that end after an answer which is written, or waits for those before it: nothing that is received on them from
 * now on can be answered.
 */
export const endingConnections = new WeakSet<Socket>();
