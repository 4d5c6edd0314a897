/**
 * The body of a call, from the decision that it may come to its last byte: its place is held while it arrives, and
 * given back when it cannot be taken or its client leaves.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import type { Admission } from '../../dispatch/arrivals.js';
import type { Backend } from './backend.js';
import { readBody, type BodyLimits } from '../socket/read-body.js';
import { onceClosed } from '../socket/request-facts.js';

export interface ExpectedBody extends Pick<BodyLimits, 'announcedBytes' | 'maxBodyBytes'> {
  readonly place: Admission;
}

export interface BodyOwner {
  /** Asked before a byte is read. @throws ServeError to turn the request away */
  admit(): ExpectedBody;
  /** The whole body; `place` is the owner's to use up. @throws ServeError to turn the request away, its place given back */
  onWhole(pieces: Buffer[], bytes: number, place: Admission): void;
  /** The body is not taken, and may still be arriving. */
  turnAway(error: ServeError): void;
  /** The reply is out, or the client has left. */
  onClosed(): void;
}

/** Calls exactly one of `onWhole` and `turnAway`, or both in this order, or neither if the client leaves before. */
export function takeBody(
  backend: Backend,
  request: IncomingMessage,
  response: ServerResponse,
  owner: BodyOwner,
): void {
  let expected: ExpectedBody;
  try {
    expected = owner.admit();
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    owner.turnAway(thrown);
    return;
  }
  const { place, announcedBytes, maxBodyBytes } = expected;
  const leave = (error: ServeError): void => {
    place.release();
    owner.turnAway(error);
  };
  onceClosed(request, response, () => {
    place.release();
    owner.onClosed();
  });
  backend.inviteBody(request, response);
  readBody(
    request,
    { announcedBytes, maxBodyBytes, bodyTimeoutMs: backend.options.bodyTimeout },
    {
      onBytes: (bytes) => place.grow(bytes),
      onFailed: leave,
      onWhole: (pieces, bytes) => {
        try {
          owner.onWhole(pieces, bytes, place);
        } catch (thrown) {
          if (!(thrown instanceof ServeError)) throw thrown;
          leave(thrown);
        }
      },
    },
  );
}
