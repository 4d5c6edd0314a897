/**
 * Sends error replies that reach their clients, even one that is still sending a body which will not be read.
 *
 * Closing at once would reset the connection, and the reply would be lost on the way. So the reply is sent completely
 * and the rest of the body is discarded, within a bound. If that rest is small the connection stays open: a client that
 * should retry later should not need a new one. Otherwise it is closed afterwards.
 */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { onceCoded } from './compressed-response.js';
import { SLICE_BYTES } from './input-turns.js';
import { resetConnection } from './node-internals.js';
import { endingConnections, hasBody } from './request-facts.js';

/** Bytes of an unwanted body that are read and discarded before the connection is cut. */
const MAX_DISCARDED_BYTES = 256 * 1024 * 1024;
const DISCARD_MS = 5000;

/**
 * Pieces that a discarded body may arrive in, and one more for each of its `BYTES_PER_PIECE`. A piece takes the front as
 * long as 16 KiB do, and Node makes one of each chunk: a read of 64 KiB holds 11,000 chunks of one byte.
 */
const MIN_PIECES = 1000;
const BYTES_PER_PIECE = 1024;

/** Pieces that the client's chunks may make; input that is read in slices cuts a chunk in two at the end of each. */
function fairPieces(bytes: number): number {
  return MIN_PIECES + bytes / BYTES_PER_PIECE + bytes / SLICE_BYTES;
}

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
  if (isLast) {
    headers['Connection'] = 'close';
    endingConnections.add(request.socket);
  }
  response.writeHead(status, phrase ?? STATUS_CODES[status] ?? '', headers);
  if (isReceived(request)) {
    response.end(body);
    return;
  }
  response.write(body);
  discardThenEnd(request, response, isLast ? null : (readsOnBytes ?? null), isLast);
}

/** Discards the rest of a body that is not read, after its answer, within the limits for a refused request. */
export function discardRest(request: IncomingMessage): void {
  if (request.socket.destroyed) return;
  const { socket } = request;
  const cut = (): void => void socket.destroy();
  const timer = setTimeout(cut, DISCARD_MS);
  // The request of a connection that ends behind its answer has no `close`, and the timer would keep all that has arrived.
  const end = (): void => {
    clearTimeout(timer);
    socket.off('close', end);
  };
  request.once('close', end);
  socket.once('close', end);
  discard(request, MAX_DISCARDED_BYTES, () => {}, cut);
}

/** Whether nothing of the request is missing: without a body, its end may still be in the parser. */
function isReceived(request: IncomingMessage): boolean {
  return request.complete || !hasBody(request);
}

/**
 * Reads a body and forgets it. `onPiece`: called for each piece. `onTooMuch`: called once, when it is larger than
 * `maxBytes` or came in more pieces than are fair to others.
 */
function discard(
  request: IncomingMessage,
  maxBytes: number,
  onPiece: () => void,
  onTooMuch: () => void,
): void {
  let bytes = 0;
  let pieces = 0;
  const take = (piece: Buffer): void => {
    bytes += piece.length;
    pieces += 1;
    onPiece();
    if (bytes <= maxBytes && pieces <= fairPieces(bytes)) return;
    request.off('data', take); // the rest of what was read at once still comes
    onTooMuch();
  };
  request.on('data', take);
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
    onceCoded(response, () => setImmediate(() => socket.destroySoon()));
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
  if (isReceived(request)) return false;
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
  const finish = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const cutOff = (): void => {
    finish();
    if (!closes) request.destroy(); // the client announced little, and does not even send that
  };
  const timer = setTimeout(cutOff, DISCARD_MS);
  const onPiece = readsOnBytes === null ? (): void => {} : (): void => void timer.refresh();
  request.on('end', finish);
  request.on('close', () => clearTimeout(timer));
  discard(request, readsOnBytes ?? MAX_DISCARDED_BYTES, onPiece, cutOff);
}
