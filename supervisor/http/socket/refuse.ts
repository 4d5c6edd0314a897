/**
 * Sends error replies that reach their clients, even one that is still sending a body which nobody will read.
 *
 * Closing at once would reset the connection and the reply would be lost on the way. So the reply goes out whole
 * and what keeps coming is thrown away, within a bound. The connection lives on if that is little: a client that is
 * told to come back later should not need a new one. Otherwise it is closed then.
 */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { resetConnection } from './tcp-socket.js';

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
  /**
   * The connection is kept, and what is still to come of the body is thrown away, if that is no more than this. Without
   * it only a small body is worth as much.
   */
  readonly readsOnBytes?: number;
}

/**
 * Sends the failure with `headers`, and with its length; throws away what is still arriving of the request's body, in
 * order to keep or to close the connection. `closes`: it ends in any case.
 */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  failure: Failure,
  headers: Record<string, string | number>,
  closes: boolean,
): void {
  if (response.headersSent) {
    breakOff(response);
    return;
  }
  const { status, phrase, body, readsOnBytes } = failure;
  const isLast = closes || failure.closes === true || mayBringMuch(request, readsOnBytes);
  headers['Content-Length'] = body.length;
  if (isLast) headers['Connection'] = 'close';
  response.writeHead(status, phrase ?? STATUS_CODES[status] ?? '', headers);
  if (request.complete) {
    response.end(body);
    return;
  }
  response.write(body);
  linger(request, response, isLast ? null : (readsOnBytes ?? null), isLast);
}

/** The answer is out: what is still to come of a body that nobody reads has as much time as that of a refused request. */
export function boundRest(request: IncomingMessage): void {
  if (request.complete || request.socket.destroyed) return;
  let bytes = 0;
  const cut = (): void => void request.socket.destroy();
  const timer = setTimeout(cut, LINGER_MS);
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > LINGER_BYTES) cut();
  });
  request.once('end', () => clearTimeout(timer));
  request.socket.once('close', () => clearTimeout(timer));
  request.resume();
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
    resetConnection(socket);
  }
}

/** Time for the last bytes of a broken answer to leave; a client that does not read them must not keep its connection. */
const BREAK_GRACE_MS = 1000;

/** Whether more may follow than is worth reading. A client that waits for `100 Continue` may send all or nothing. */
function mayBringMuch(request: IncomingMessage, readsOnBytes: number | undefined): boolean {
  if (request.complete) return false;
  const { 'content-length': length = '0', 'transfer-encoding': coding, expect } = request.headers;
  if (expect !== undefined || Number(length) > (readsOnBytes ?? SMALL_BODY_BYTES)) return true;
  return coding !== undefined && readsOnBytes === undefined; // it is counted as it comes
}

/** `readsOnBytes`: for so much the client may take its time, as long as it goes on. */
function linger(
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
  const timer = setTimeout(cutOff, LINGER_MS);
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (readsOnBytes !== null) timer.refresh();
    if (bytes > (readsOnBytes ?? LINGER_BYTES)) cutOff();
  });
  request.on('end', finish);
  request.on('close', () => clearTimeout(timer));
  request.resume();
}
