/** Checks API keys. Several keys are valid at once, so that one can replace another. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { digestOf } from '../../options/secrets.js';

export class ApiKeys {
  /** False if no keys are configured: then every client may call. */
  readonly required: boolean;
  readonly #digests: readonly Buffer[];

  constructor(digests: readonly Buffer[]) {
    this.required = digests.length > 0;
    this.#digests = digests;
  }

  /**
   * Whether this key is valid; takes the same time for a wrong key as for a right one. Pass null or undefined for a
   * request without a key.
   */
  allows(candidate: string | null | undefined): boolean {
    if (!this.required) return true;
    if (candidate === null || candidate === undefined) return false;
    const digest = digestOf(candidate);
    let matches = 0;
    for (const known of this.#digests) matches |= Number(timingSafeEqual(known, digest));
    return matches !== 0;
  }
}

/** Returns the key that a client sent: in a header with one of these names (in lower case), else as a bearer token. */
export function keyOf(headers: IncomingHttpHeaders, names: readonly string[]): string | undefined {
  for (const name of names) {
    const own = headers[name];
    if (typeof own === 'string' && own !== '') return own;
  }
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
}

/**
 * A page that opens a WebSocket cannot set a header of the handshake, only the subprotocols that it offers. So the key may be
 * one of these: `banana-key.` and the key in base64url.
 */
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
