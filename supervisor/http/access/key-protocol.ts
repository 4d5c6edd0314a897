/**
 * The key of a WebSocket that a page opens. Browsers let a page set no header of the handshake but the subprotocols
 * that it offers, so the key may be one of these: `banana-key.` and the key in base64url.
 */
import type { IncomingMessage } from 'node:http';
import { keyOf } from './api-keys.js';

const HEADER = 'sec-websocket-protocol';
const KEY_PREFIX = 'banana-key.';

/**
 * Moves the key of a handshake to `headers.authorization`, unless there is a key in the headers of `keyNames` or there.
 * It is removed from the offered protocols, parsed and raw, so that it is neither selected nor seen by the app. Returns
 * whether a key was offered.
 */
export function moveKeyProtocol(
  { headers, rawHeaders }: Pick<IncomingMessage, 'headers' | 'rawHeaders'>,
  keyNames: readonly string[],
): boolean {
  const offered = protocolsIn(headers[HEADER] ?? '');
  const sent = offered.find(isKey);
  if (sent === undefined) return false;
  const others = offered.filter((one) => !isKey(one)).join(', ');
  if (others === '') delete headers[HEADER];
  else headers[HEADER] = others;
  withoutKeys(rawHeaders);
  const key = Buffer.from(sent.slice(KEY_PREFIX.length), 'base64url').toString('latin1');
  if (keyOf(headers, keyNames) === undefined) headers.authorization = `Bearer ${key}`;
  return true;
}

function withoutKeys(rawHeaders: string[]): void {
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2) {
    if (rawHeaders[i]?.toLowerCase() !== HEADER) continue;
    const others = protocolsIn(rawHeaders[i + 1] as string).filter((one) => !isKey(one));
    if (others.length === 0) rawHeaders.splice(i, 2);
    else rawHeaders[i + 1] = others.join(', ');
  }
}

function protocolsIn(header: string): string[] {
  return header.split(',').map((one) => one.trim());
}

function isKey(protocol: string): boolean {
  return protocol.startsWith(KEY_PREFIX);
}
