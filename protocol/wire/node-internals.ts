/** The private fields of Node that this folder uses. test/house/node-internals.test.ts names those that a new Node lacks. */
import type { Socket } from 'node:net';

/** `net.Socket` keeps the object that reads and writes for it, a libuv stream, in `_handle`. */
export interface SocketInternals {
  _handle?: {
    /** Exists on handles that can read into a buffer of their user's. */
    readonly useUserBuffer?: unknown;
  } | null;
}

/**
 * Takes the handle away from `socket`, which must not be used afterwards. There is no documented way to move an open
 * socket into one with the option `onread`. Null, and `socket` stays usable, if the handle cannot read into a user's buffer.
 */
export function takeHandle(socket: Socket): object | null {
  const internals = socket as unknown as SocketInternals;
  const handle = internals._handle;
  if (typeof handle?.useUserBuffer !== 'function') return null;
  internals._handle = null;
  return handle;
}
