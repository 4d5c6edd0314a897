/**
 * The HTTP server behind TLS: node:https with the protocols and ciphers that are safe today, and an answer for clients
 * that send plain HTTP.
 *
 * `http-server.ts` handles the connection after its handshake; the sockets there are Node's TLS sockets, and
 * `node-internals.ts` finds the TCP sockets below them.
 */
import type { Server, ServerOptions } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsCredentials } from '../../options/tls.js';

/** Only ciphers with forward secrecy and authentication; the first three are those of TLS 1.3. */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
];

/**
 * `handshakeMs`: the longest handshake. `onPlain`: called with a connection whose client sent plain HTTP, still unread.
 */
export function createTlsServer(
  options: ServerOptions,
  { cert, key }: TlsCredentials,
  handshakeMs: number,
  onPlain: (socket: Socket) => void,
): Server {
  const tls = {
    cert,
    key,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS.join(':'),
    handshakeTimeout: handshakeMs,
  } as const;
  const server = createServer({ ...options, ...tls });
  const [beginHandshake] = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) =>
    onFirstBytes(socket, handshakeMs, (isHttp) => {
      if (isHttp) onPlain(socket);
      else beginHandshake?.call(server, socket);
    }),
  );
  // Node would report a broken request, but this client cannot read an answer.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

/**
 * Calls back when the first bytes of a connection are there, and leaves them unread; ends the connection if none come
 * within `limitMs`.
 */
function onFirstBytes(socket: Socket, limitMs: number, callback: (isHttp: boolean) => void): void {
  const leave = (): void => void socket.destroy(); // it may disconnect before another listener is added
  socket.on('error', leave).on('end', leave).on('timeout', leave).setTimeout(limitMs);
  socket.once('data', (piece: Buffer) => {
    socket.pause();
    socket.off('end', leave).off('timeout', leave).setTimeout(0);
    socket.unshift(piece);
    callback(isLetter(piece[0] ?? 0));
    socket.off('error', leave);
  });
}

/** Every HTTP method begins with a capital letter, and no TLS record does. */
function isLetter(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}
