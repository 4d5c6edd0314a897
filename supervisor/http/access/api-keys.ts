/** Checks API keys. Several keys are valid at once, so that one can replace another. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { digestOf, type KeyDigest } from '../../options/api-key.js';

export class ApiKeys {
  /** False if no keys are configured: then every client may call. */
  readonly required: boolean;
  readonly #digests: readonly KeyDigest[];

  constructor(digests: readonly KeyDigest[]) {
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
