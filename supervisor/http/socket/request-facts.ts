/** What is asked of every request, whoever answers it: its path, whether it has a body, when it is over. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The request's path as written, without the query; of the absolute form (RFC 9112 section 3.2.2) too. */
export function pathOf(url = '/'): string {
  if (!url.startsWith('/')) return URL.canParse(url) ? new URL(url).pathname : url;
  const question = url.indexOf('?');
  return question < 0 ? url : url.slice(0, question);
}

/** Whether a body comes with the request, even an empty one. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
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
