/** Decides who may read the list of everybody's jobs. */
import type { IncomingMessage } from 'node:http';
import { isThisMachine } from '../../options/address.js';

interface Asker {
  /** Whether it came with a valid key. */
  readonly hasKey: boolean;
  /** Address of the client, or `unix`. */
  readonly client: string;
  readonly request: Pick<IncomingMessage, 'headers'>;
}

/** Everybody with a valid key; on a server without keys, programs of this machine. */
export function mayReadOthersJobs({ hasKey, client, request: { headers } }: Asker): boolean {
  if (hasKey) return true;
  const isHere = client === 'unix' || isThisMachine(client);
  return isHere && headers.origin === undefined && isThisMachine(headers.host?.replace(/:\d*$/, '') ?? '');
}
