/** A WebSocket written by hand: frames that no client library would send. */
import { RawConnection } from './raw-http.js';
import type { Server } from './server.js';

export const HANDSHAKE = [
  'Host: test',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
].join('\r\n');

/** Resolves once the server has switched. */
export async function openRawSocket(server: Pick<Server, 'url'>, path: string): Promise<RawConnection> {
  const connection = await RawConnection.open(server, true);
  connection.send(`GET ${path} HTTP/1.1\r\n${HANDSHAKE}\r\n\r\n`);
  await connection.received('101 Switching Protocols');
  await connection.received('\r\n\r\n');
  return connection;
}

/** RFC 6455 section 5.2. The mask is all zeros, so that the payload reads as it is. */
export function frameHead(opcode: number, payloadBytes: number, isMasked = true): Buffer {
  const head = Buffer.alloc(isMasked ? 14 : 10);
  head[0] = 0x80 | opcode;
  head[1] = (isMasked ? 0x80 : 0) | 127;
  head.writeBigUInt64BE(BigInt(payloadBytes), 2);
  return head;
}

export const TEXT = 1;
export const BINARY = 2;
