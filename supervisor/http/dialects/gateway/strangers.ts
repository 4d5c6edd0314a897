/** Starts whose key is in a body that is still arriving: they wait outside, and take no place in the queue. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Admission } from '../../../dispatch/arrivals.js';
import type { Backend } from '../../call/backend.js';

/** At a time; the clients send at most 10 MiB each. */
const MAX_STRANGERS = 64;
const MAX_STRANGER_BYTES = 128 * 1024 * 1024;

/** @throws SERVE_QUEUE_FULL */
export function waitOutside({ strangers }: Backend, announced: number): Admission {
  const checkRoom = (moreBytes: number): void => {
    if (strangers.bytes + moreBytes > MAX_STRANGER_BYTES) throw noRoom();
  };
  if (strangers.count >= MAX_STRANGERS) throw noRoom();
  checkRoom(announced);
  return strangers.add(announced, checkRoom);
}

function noRoom(): ServeError {
  return new ServeError('SERVE_QUEUE_FULL', undefined, { retryAfterS: 1 });
}
