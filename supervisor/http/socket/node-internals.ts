/** The private fields of Node that the supervisor uses. test/house/node-internals.test.ts names those that a new Node lacks. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Fields of `net.Socket` and `tls.TLSSocket`. */
interface SocketInternals extends Socket {
  /** The libuv stream. */
  readonly _handle?: {
    readonly fd?: number;
    readonly bytesWritten?: number;
    /** Bytes that were written and that the kernel has not taken; it shrinks byte by byte. No documented field shows that. */
    readonly writeQueueSize?: number;
    /** Whether it reads; Node writes it with each of the methods below. */
    reading?: boolean;
    readStart?(): number;
    readStop?(): number;
  } | null;
  /** The TCP socket below a TLS socket; null for others. */
  readonly _parent?: Socket | null;
  /** The response whose turn it is on this connection, if this is a connection of a server. */
  readonly _httpMessage?: ServerResponse | null;
  /** The parser that reads this connection of a server; null after an upgrade. */
  readonly parser?: Parser | null;
  /** Node reads on only when more of the answers has left. */
  readonly _paused?: boolean;
  /** `ended`: the end of the client's input was read, perhaps before the input itself. */
  readonly _readableState?: { readonly ended?: boolean };
}

/** Node's HTTP parser of one connection. */
export interface Parser {
  /** Called with each request as soon as its head is complete; its result goes to llhttp. */
  onIncoming: ((request: IncomingMessage, keepsAlive: boolean) => number) | null;
  pause(): void;
  resume(): void;
  execute(bytes: Buffer): unknown;
}

/** The result of `onIncoming` that stops the parser after the head: HPE_PAUSED of llhttp. `resume` lets it go on. */
export const STOP_HERE = 21;

/** The result of `onIncoming` that makes the request an error of the parser, with the code HPE_CB_HEADERS_COMPLETE. */
export const REFUSE_HEAD = -1;

/**
 * The TCP socket of a TLS connection; any other socket is returned itself. Node encrypts everything that is written to a TLS
 * socket at once and passes it on, so only the TCP socket shows how much the kernel has taken, and only that can be reset.
 */
function tcpSocketOf(socket: Socket): Socket {
  return (socket as SocketInternals)._parent ?? socket;
}

/** The handle of the TCP or unix socket; null once that is closed. */
export function handleOf(socket: Socket): NonNullable<SocketInternals['_handle']> | null {
  return (tcpSocketOf(socket) as SocketInternals)._handle ?? null;
}

/** Bytes that are held for a TLS connection in addition to its own buffer: the same data, encrypted. */
export function encryptedBytes(socket: Socket): number {
  return tcpSocketOf(socket) === socket ? 0 : (handleOf(socket)?.writeQueueSize ?? 0);
}

/**
 * Aborts a connection: the client gets a reset, and the kernel drops unsent bytes. A unix socket has no reset and is only
 * closed.
 */
export function resetConnection(socket: Socket): void {
  const tcp = tcpSocketOf(socket);
  if (tcp.remoteFamily === undefined) socket.destroy();
  else tcp.resetAndDestroy();
  // Earlier, the TLS socket would count its written bytes as sent before it learns that the connection is gone.
  if (tcp !== socket) process.nextTick(() => socket.destroy());
}

/** The response whose turn it is on this connection. `node:http` gives an upgrade and a broken request no other way to it. */
export function currentResponse(socket: Socket): ServerResponse | null {
  return (socket as SocketInternals)._httpMessage ?? null;
}

/** The parser that reads this connection; null if none does. */
export function parserOf(socket: Socket): Parser | null {
  return (socket as SocketInternals).parser ?? null;
}

/** Whether Node has paused this connection because its client does not take its answers. */
export function isPausedByNode(socket: Socket): boolean {
  return (socket as SocketInternals)._paused === true;
}

/** Whether the client sends no more: the end of its input has arrived, though not all before it may be handled. */
export function sendsNoMore(socket: Socket): boolean {
  return (socket as SocketInternals)._readableState?.ended === true;
}

/**
 * Stops reading this connection until `startReading`. `pause` does not: Node goes on until its buffer is full, and reads
 * the end of the input before what is in the buffer is handled.
 */
export function stopReading(socket: Socket): void {
  const handle = (socket as SocketInternals)._handle;
  if (handle?.reading !== true) return;
  handle.reading = false;
  handle.readStop?.();
}

export function startReading(socket: Socket): void {
  const handle = (socket as SocketInternals)._handle;
  if (handle?.reading !== false) return;
  handle.reading = true;
  handle.readStart?.();
}

/** Whether this request leaves HTTP: before it is handed over, whether its client asks for that; afterwards, whether Node agrees. */
export function isUpgrade(request: IncomingMessage): boolean {
  return (request as { readonly upgrade?: boolean | null }).upgrade === true;
}
