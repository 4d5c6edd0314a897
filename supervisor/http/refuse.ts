/**
 * An error reply that the client really receives, even while it is still sending a body we will not read.
 *
 * Closing at once would reset the connection and the reply would be lost on the way. So the reply goes out whole,
 * what keeps coming is thrown away within a bound, and only then is the connection closed.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServeError } from '../../protocol/errors.js';
import { httpStatus } from './http-status.js';

/** How much of an unwanted body is read and thrown away before the connection is cut. */
const LINGER_BYTES = 256 * 1024 * 1024;
const LINGER_MS = 5000;

export interface RefusalHeaders {
  readonly requestId: string;
  /** Server-Timing, if the request was a call. */
  readonly timing?: string;
  /** Tell the client not to send more on this connection. */
  readonly close?: boolean;
  readonly allow?: string;
}

/** The one shape of an error body. */
export function errorBody(error: ServeError, requestId: string): Buffer {
  const { code, message } = error;
  return Buffer.from(JSON.stringify({ error: { code, message, requestId } }));
}

/** Sends the error. If the request's body is not read to its end, lingers and closes the connection. */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: ServeError,
  options: RefusalHeaders,
): void {
  if (response.headersSent) {
    response.destroy(); // never a clean end of a broken answer
    return;
  }
  const body = errorBody(error, options.requestId);
  const unread = !request.complete;
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    'X-Request-Id': options.requestId,
  };
  if (options.timing !== undefined) headers['Server-Timing'] = options.timing;
  if (options.allow !== undefined) headers['Allow'] = options.allow;
  if (error.retryAfterS !== undefined) headers['Retry-After'] = error.retryAfterS;
  if (unread || options.close === true) headers['Connection'] = 'close';
  response.writeHead(httpStatus(error.code), headers);
  if (!unread) {
    response.end(body);
    return;
  }
  response.write(body);
  linger(request, response);
}

function linger(request: IncomingMessage, response: ServerResponse): void {
  let bytes = 0;
  const finish = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(finish, LINGER_MS);
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > LINGER_BYTES) finish();
  });
  request.on('end', finish);
  request.on('close', () => clearTimeout(timer));
  request.resume();
}
