/**
 * Decides who may read the app's words: lines of its stderr, and messages of its errors. They may name files, and repeat what
 * a client sent. Everybody with a valid key may; on a server without keys, programs of this machine.
 */
import type { IncomingMessage } from 'node:http';
import { ERRORS, type ServeError } from '../../../protocol/errors.js';
import { isThisMachine } from '../../options/address.js';

/**
 * The reason for which the words are hidden. `remote`: the connection comes from another machine. `page`: a browser sent the
 * request for a page. `proxied`: a proxy sent it. `host`: its `Host` is not a name or an address of this machine, which
 * another machine's page may have made lead here (DNS rebinding).
 */
export type HiddenBecause = 'remote' | 'page' | 'proxied' | 'host';

interface Asker {
  /** Whether it came with a valid key. */
  readonly hasKey: boolean;
  /** Address of the client, or `unix`. */
  readonly client: string;
  readonly request: Pick<IncomingMessage, 'headers'>;
}

/** Null if the words are shown. Of a request that needs a key, it has been checked already. */
export function hiddenBecause({ hasKey, client, request: { headers } }: Asker): HiddenBecause | null {
  if (hasKey) return null;
  if (client !== 'unix' && !isThisMachine(client)) return 'remote';
  if (headers.origin !== undefined) return 'page';
  if (Object.keys(headers).some(isOfProxy)) return 'proxied';
  return isThisMachine(headers.host?.replace(/:\d*$/, '') ?? '') ? null : 'host';
}

function isOfProxy(name: string): boolean {
  return name === 'forwarded' || name.startsWith('x-forwarded-');
}

/** Returns the message of an error, or an empty text if it is the app's and those are hidden. */
export function shownMessage(
  { code, message }: Pick<ServeError, 'code' | 'message'>,
  showsWords: boolean,
): string {
  const isOwn = ERRORS[code].source === 'app' && message !== ERRORS[code].message;
  return isOwn && !showsWords ? '' : message;
}
