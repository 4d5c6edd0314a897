/**
 * The TCP socket below a connection. Node encrypts everything written to a TLS socket at once and passes it on, so only
 * the TCP socket below shows what the kernel has taken, and only that can be reset.
 */
import type { Socket } from 'node:net';

/** Node's own fields. */
interface Wrapped {
  readonly encrypted?: boolean;
  readonly _parent?: Socket | null;
}

/** The TCP socket of a TLS connection; any other socket is its own. */
export function tcpSocketOf(socket: Socket): Socket {
  const { encrypted, _parent } = socket as unknown as Wrapped;
  return encrypted === true ? (_parent ?? socket) : socket;
}

/** Node's own field. The queue is of what was written and the kernel has not taken; it shrinks byte by byte. */
export interface Handle {
  readonly fd?: number;
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/** Returns the handle of the TCP or unix socket below; null once that is closed. */
export function handleOf(socket: Socket): Handle | null {
  return (tcpSocketOf(socket) as unknown as { _handle?: Handle | null })._handle ?? null;
}

/** Bytes that are held for a TLS connection in addition to its own queue: the same data, encrypted. */
export function encryptedBytes(socket: Socket): number {
  return tcpSocketOf(socket) === socket ? 0 : (handleOf(socket)?.writeQueueSize ?? 0);
}

/**
 * Ends a connection at once with a reset, which its client cannot mistake for a clean end; the kernel drops its
 * buffers. A unix socket has no reset, and is closed.
 */
export function resetConnection(socket: Socket): void {
  const tcp = tcpSocketOf(socket);
  if (tcp.remoteFamily === undefined) socket.destroy();
  else tcp.resetAndDestroy();
  // Otherwise the TLS socket regards its writes as sent before it learns that the connection is gone.
  if (tcp !== socket) process.nextTick(() => socket.destroy());
}
