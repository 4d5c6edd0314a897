/**
 * Sends error replies that reach their clients, even one that is still sending a body which nobody will read.
 *
 * Closing at once would reset the connection and the reply would be lost on the way. So the reply goes out whole
 * and what keeps coming is thrown away, within a bound. The connection lives on if that is little: a client that is
 * told to come back later should not need a new one. Otherwise it is closed then.
 */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ERRORS, ServeError } from '../../../protocol/errors.js';
import { SUPPORTED_CODINGS } from './decode-body.js';
import { httpStatus } from './http-status.js';
import { bananaIdHeader } from './request-id.js';

/** How much of an unwanted body is read and thrown away before the connection is cut. */
const LINGER_BYTES = 256 * 1024 * 1024;
const LINGER_MS = 5000;

/** A body this small is cheaper to read to its end than a new connection. */
const SMALL_BODY_BYTES = 64 * 1024;

/** How an error looks on the wire, in the dialect of its request. */
export interface Failure {
  readonly status: number;
  /** The status line's reason; the standard one if left out. */
  readonly phrase?: string;
  /** Without length, connection and request id: these are the front's. */
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
  /** Ends the connection, whatever else may still come on it. */
  readonly closes?: boolean;
}

export interface RefusalHeaders {
  readonly requestId: string;
  /** Value of the Server-Timing header; absent if the request was no call. */
  readonly timing?: string;
  /** Tell the client not to send more on this connection. */
  readonly close?: boolean;
  readonly allow?: string;
  /** Tell the client what the log is told: the stack of the app's own error. */
  readonly expose?: boolean;
}

/** The one shape of an error body. */
export function errorBody(error: ServeError, requestId: string): Buffer {
  const { code, message } = error;
  return Buffer.from(JSON.stringify({ error: { code, message, requestId, source: ERRORS[code].source } }));
}

/**
 * Sends the error; throws away what is still arriving of the request's body, in order to keep or to close the
 * connection.
 */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: ServeError,
  options: RefusalHeaders,
): void {
  if (response.headersSent) {
    breakOff(response);
    return;
  }
  const isExposed = options.expose === true && error.detail !== '';
  const body = isExposed ? Buffer.from(error.detail) : errorBody(error, options.requestId);
  const closes = options.close === true || closesAfter(request, error);
  const headers: Record<string, string | number> = {
    'Content-Type': isExposed ? 'text/plain; charset=utf-8' : 'application/json',
    'Content-Length': body.length,
    'X-Request-Id': options.requestId,
    ...bananaIdHeader(request),
  };
  if (options.timing !== undefined) headers['Server-Timing'] = options.timing;
  if (options.allow !== undefined) headers['Allow'] = options.allow;
  if (error.code === 'SERVE_UNAUTHORIZED') headers['WWW-Authenticate'] = 'Bearer'; // RFC 9110 section 15.5.2
  if (error.code === 'SERVE_UNSUPPORTED_CODING') headers['Accept-Encoding'] = SUPPORTED_CODINGS; // RFC 9110 section 15.5.16
  if (error.retryAfterS !== undefined) headers['Retry-After'] = error.retryAfterS;
  if (error.code === 'SERVE_UPGRADE_REQUIRED') {
    headers['Upgrade'] = 'websocket'; // RFC 9110 section 15.5.22
    headers['Sec-WebSocket-Version'] = '13'; // RFC 6455 section 4.4
  }
  if (closes) headers['Connection'] = 'close';
  answerUnread(request, response, { status: httpStatus(error.code), headers, body, closes });
}

export interface UnreadAnswer {
  readonly status: number;
  /** All headers, `Connection: close` included if the connection closes. */
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
  readonly closes: boolean;
}

/** Answers a request whose body may still be arriving, and which nobody will read. */
export function answerUnread(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body, closes }: UnreadAnswer,
): void {
  response.writeHead(status, STATUS_CODES[status] ?? '', headers);
  if (request.complete) {
    response.end(body);
    return;
  }
  response.write(body);
  linger(request, response, closes);
}

/** Whether a refusal ends the connection, because of what may still come on it. */
export function closesAfter(request: IncomingMessage, { code }: ServeError): boolean {
  return code === 'SERVE_REQUEST_TIMEOUT' || mayBringMuch(request);
}

/**
 * Ends a broken answer so that it never looks whole: what was produced before goes out, the last chunk never does. A
 * client of HTTP/1.0 knows no chunks, and is told with a reset.
 */
function breakOff(response: ServerResponse): void {
  const { socket } = response;
  if (socket === null) {
    response.destroy(); // it is pipelined: nothing of it has left, and earlier answers still may
  } else if (response.chunkedEncoding) {
    // What was written in this turn is still on its way to the socket (Node 24 and newer).
    setImmediate(() => socket.destroySoon());
    setTimeout(() => socket.destroy(), BREAK_GRACE_MS).unref();
  } else {
    cutOff(socket);
  }
}

/** Ends a connection at once and never cleanly: its client is told with a reset, and the kernel drops what it holds. */
export function cutOff(socket: Socket): void {
  if (socket.remoteFamily === undefined)
    socket.destroy(); // a unix socket knows no reset
  else socket.resetAndDestroy();
}

/** Time for the last bytes of a broken answer to leave; a client that does not read them must not keep its connection. */
const BREAK_GRACE_MS = 1000;

/** Whether more may follow than is worth reading. A client that waits for `100 Continue` may send all or nothing. */
function mayBringMuch(request: IncomingMessage): boolean {
  if (request.complete) return false;
  const { 'content-length': length = '0', 'transfer-encoding': coding, expect } = request.headers;
  return coding !== undefined || expect !== undefined || Number(length) > SMALL_BODY_BYTES;
}

function linger(request: IncomingMessage, response: ServerResponse, closes: boolean): void {
  let bytes = 0;
  const finish = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const cutOff = (): void => {
    finish();
    if (!closes) request.destroy(); // the client announced little, and does not even send that
  };
  const timer = setTimeout(cutOff, LINGER_MS);
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > LINGER_BYTES) cutOff();
  });
  request.on('end', finish);
  request.on('close', () => clearTimeout(timer));
  request.resume();
}
