/**
 * What lies below a connection. Node encrypts all that is written to a TLS socket at once and hands it on, so that only
 * the TCP socket below it shows what the kernel has taken; only that can be reset, too.
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

/** Of the TCP or unix socket below; null once that is closed. */
export function handleOf(socket: Socket): Handle | null {
  return (tcpSocketOf(socket) as unknown as { _handle?: Handle | null })._handle ?? null;
}

/** Bytes that are held for a TLS connection beside what was written to it: the same, encrypted. */
export function encryptedBytes(socket: Socket): number {
  return tcpSocketOf(socket) === socket ? 0 : (handleOf(socket)?.writeQueueSize ?? 0);
}

/**
 * Ends a connection at once and never cleanly: its client is told with a reset, and the kernel drops what it holds. A unix
 * socket knows no reset, and is closed.
 */
export function resetConnection(socket: Socket): void {
  const tcp = tcpSocketOf(socket);
  if (tcp.remoteFamily === undefined) socket.destroy();
  else tcp.resetAndDestroy();
  // Else the TLS socket takes what it had written for sent before it hears that there is no connection.
  if (tcp !== socket) process.nextTick(() => socket.destroy());
}
