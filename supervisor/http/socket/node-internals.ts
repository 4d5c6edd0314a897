/** The private fields of Node that the supervisor uses. test/house/node-internals.test.ts names those that a new Node lacks. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Fields of `net.Socket` and `tls.TLSSocket`. */
export interface SocketInternals {
  readonly _handle?: Handle | null;
  /** The TCP socket below a TLS socket. */
  readonly _parent?: Socket | null;
  /** The response whose turn it is on this connection, if this is a connection of a server. */
  readonly _httpMessage?: ServerResponse | null;
}

/** The libuv stream of a socket. */
export interface Handle {
  readonly fd?: number;
  readonly bytesWritten?: number;
  /** Bytes that were written and that the kernel has not taken; it shrinks byte by byte. No documented field shows that. */
  readonly writeQueueSize?: number;
}

function internalsOf(socket: Socket): SocketInternals {
  return socket as unknown as SocketInternals;
}

/** The TCP socket of a TLS connection; any other socket is returned itself. Only TCP sockets can be reset. */
export function tcpSocketOf(socket: Socket): Socket {
  const isTls = (socket as { readonly encrypted?: boolean }).encrypted === true;
  return isTls ? (internalsOf(socket)._parent ?? socket) : socket;
}

/** The handle of the TCP or unix socket; null once that is closed. */
export function handleOf(socket: Socket): Handle | null {
  return internalsOf(tcpSocketOf(socket))._handle ?? null;
}

/** The response whose turn it is on this connection. `node:http` gives an upgrade and a broken request no other way to it. */
export function currentResponse(socket: Socket): ServerResponse | null {
  return internalsOf(socket)._httpMessage ?? null;
}
