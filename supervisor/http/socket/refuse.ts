/**
 * Sends error replies that reach their clients, even one that is still sending a body which will not be read.
 *
 * Closing at once would reset the connection, and the reply would be lost on the way. So the reply is sent completely
 * and the rest of the body is discarded, within a bound. If that rest is small the connection stays open: a client that
 * should retry later should not need a new one. Otherwise it is closed afterwards.
 */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { resetConnection } from './tcp-socket.js';

/** Bytes of an unwanted body that are read and discarded before the connection is cut. */
const MAX_DISCARDED_BYTES = 256 * 1024 * 1024;
const DISCARD_MS = 5000;

/** Reading a body this small to its end is cheaper than a new connection. */
const SMALL_BODY_BYTES = 64 * 1024;

/** An error as it is sent, in the dialect of its request. */
export interface Failure {
  readonly status: number;
  /** The status line's reason; the standard one if left out. */
  readonly phrase?: string;
  /** Without length, connection and request id: the front adds these. */
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
  /** Ends the connection, whatever else may still arrive on it. */
  readonly closes?: boolean;
  /**
   * The connection is kept if the rest of the body is no larger than this; the rest is discarded. Without it, only a
   * small body is read to its end.
   */
  readonly readsOnBytes?: number;
}

/**
 * Sends the failure with `headers` and its length; discards the rest of the request's body, so that the connection can
 * be kept or closed. `closes`: always ends the connection.
 */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  failure: Failure,
  headers: Record<string, string | number>,
  closes: boolean,
): void {
  if (response.headersSent) {
    endIncomplete(response);
    return;
  }
  const { status, phrase, body, readsOnBytes } = failure;
  const isLast = closes || failure.closes === true || mayBeLarge(request, readsOnBytes);
  headers['Content-Length'] = body.length;
  if (isLast) headers['Connection'] = 'close';
  response.writeHead(status, phrase ?? STATUS_CODES[status] ?? '', headers);
  if (request.complete) {
    response.end(body);
    return;
  }
  response.write(body);
  discardThenEnd(request, response, isLast ? null : (readsOnBytes ?? null), isLast);
}

/**
 * Discards the rest of a body that is not read, after the answer has been sent, within the limits for a refused
 * request.
 */
export function discardRest(request: IncomingMessage): void {
  if (request.complete || request.socket.destroyed) return;
  let bytes = 0;
  const cut = (): void => void request.socket.destroy();
  const timer = setTimeout(cut, DISCARD_MS);
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > MAX_DISCARDED_BYTES) cut();
  });
  request.once('end', () => clearTimeout(timer));
  request.socket.once('close', () => clearTimeout(timer));
  request.resume();
}

/**
 * Ends an incomplete answer so that it never looks complete: what was produced before is sent, the last chunk is not.
 * HTTP/1.0 has no chunks, so its client gets a reset.
 */
function endIncomplete(response: ServerResponse): void {
  const { socket } = response;
  if (socket === null) {
    response.destroy(); // it is pipelined: nothing of it has been sent, and earlier answers may still be
  } else if (response.chunkedEncoding) {
    // Bytes written in this turn are still on their way to the socket (Node 24 and newer).
    setImmediate(() => socket.destroySoon());
    setTimeout(() => socket.destroy(), INCOMPLETE_GRACE_MS).unref();
  } else {
    resetConnection(socket);
  }
}

/** Time for the last bytes of an incomplete answer; a client that does not read them must not keep its connection. */
const INCOMPLETE_GRACE_MS = 1000;

/**
 * Whether the rest of the body may be larger than is worth reading. A client that waits for `100 Continue` may send all
 * or nothing.
 */
function mayBeLarge(request: IncomingMessage, readsOnBytes: number | undefined): boolean {
  if (request.complete) return false;
  const { 'content-length': length = '0', 'transfer-encoding': coding, expect } = request.headers;
  if (expect !== undefined || Number(length) > (readsOnBytes ?? SMALL_BODY_BYTES)) return true;
  return coding !== undefined && readsOnBytes === undefined; // it is counted as it arrives
}

/**
 * Discards the rest of the body, then ends the answer. For `readsOnBytes` bytes the client may take its time, as long
 * as bytes keep arriving.
 */
function discardThenEnd(
  request: IncomingMessage,
  response: ServerResponse,
  readsOnBytes: number | null,
  closes: boolean,
): void {
  let bytes = 0;
  const finish = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const cutOff = (): void => {
    finish();
    if (!closes) request.destroy(); // the client announced little, and does not even send that
  };
  const timer = setTimeout(cutOff, DISCARD_MS);
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (readsOnBytes !== null) timer.refresh();
    if (bytes > (readsOnBytes ?? MAX_DISCARDED_BYTES)) cutOff();
  });
  request.on('end', finish);
  request.on('close', () => clearTimeout(timer));
  request.resume();
}
