/** Decides who may call: anybody who knows one of the keys. Several hold at once, so that one can replace another. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { digestOf, type KeyDigest } from '../../options/api-key.js';

export class ApiKeys {
  /** Without any key everybody may call. */
  readonly required: boolean;
  readonly #digests: readonly KeyDigest[];

  constructor(digests: readonly KeyDigest[]) {
    this.required = digests.length > 0;
    this.#digests = digests;
  }

  /** Takes as long for a wrong key as for a right one. A candidate of null or undefined means that there was none. */
  allows(candidate: string | null | undefined): boolean {
    if (!this.required) return true;
    if (candidate === null || candidate === undefined) return false;
    const digest = digestOf(candidate);
    let matches = 0;
    for (const known of this.#digests) matches |= Number(timingSafeEqual(known, digest));
    return matches !== 0;
  }
}

/** Returns the key that a client sent: in a header of one of these names, in lower case, else as a bearer token. */
export function keyOf(headers: IncomingHttpHeaders, names: readonly string[]): string | undefined {
  for (const name of names) {
    const own = headers[name];
    if (typeof own === 'string' && own !== '') return own;
  }
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
}
