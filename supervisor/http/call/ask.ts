/** One request, as those who answer it share it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Backend } from './backend.js';

export interface Ask {
  readonly backend: Backend;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The one that the request names, as `namedPath` reads it. */
  readonly path: string;
  /** On the monotonic clock. */
  readonly acceptedAtMs: number;
  /** From the headers; a dialect that has one in the body sets it once that is read. */
  requestId: string;
}
