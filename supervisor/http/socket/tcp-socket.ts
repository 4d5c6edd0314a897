/**
 * The socket below a connection. Node encrypts everything that is written to a TLS socket at once and passes it on, so only
 * the TCP socket below shows how much the kernel has taken, and only that one can be reset.
 */
import type { Socket } from 'node:net';
import { handleOf, tcpSocketOf } from './node-internals.js';

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
