/**
 * Reads connections on whose upgrade was declined. Node's parser has left such a connection, so it gets a new one when
 * its turn comes: one read holds hundreds of such requests, and each would be handled before the first other client.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { inputTurns } from './shared-turns.js';

/**
 * Input of a connection that waits behind its declined upgrade. Each time a connection is read on, Node reads a piece more,
 * so one that sends nothing but upgrades would fill the memory: beyond this it is cut.
 */
const MAX_WAITING_BYTES = 256 * 1024;

/**
 * A server may decline an upgrade (RFC 9110 section 7.8): the request is put back without its `Upgrade` header, before
 * `head`, the input behind it. `arrival` is the event by which the server takes a connection.
 */
export function readOnWithoutUpgrade(
  server: Server,
  arrival: string,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
): void {
  void inputTurns.own().then(() => {
    if (head.length + socket.readableLength > MAX_WAITING_BYTES) socket.destroy();
    if (socket.destroyed) return;
    socket.setTimeout(0); // Node had set the limit of a connection without a request
    if (head.length > 0) socket.unshift(head);
    socket.unshift(headWithoutUpgrade(request));
    server.emit(arrival, socket);
  });
}

function headWithoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
