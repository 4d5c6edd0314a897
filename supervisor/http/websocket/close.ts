/** How a WebSocket says why it is closed: what a status and an error body are to other calls. */
import type { ErrorCode, ServeError } from '../../../protocol/errors.js';
import { MAX_CLOSE_REASON_BYTES } from '../../../protocol/messages.js';

/** RFC 6455 section 7.4.1, and 1013 of its registry. What is not here: 1011, the server failed. */
const CLOSE_CODES: Partial<Record<ErrorCode, number>> = {
  SERVE_SHUTTING_DOWN: 1001, // going away
  SERVE_NOT_FOUND: 1008, // against the rules
  SERVE_REQUEST_TIMEOUT: 1008,
  SERVE_SLOW_READER: 1008,
  SERVE_NOT_BEGUN: 1013, // try again later
  SERVE_NOT_READY: 1013,
  SERVE_QUEUE_FULL: 1013,
  SERVE_QUEUE_TIMEOUT: 1013,
};

export function closeCodeOf({ code }: ServeError): number {
  return CLOSE_CODES[code] ?? 1011;
}

/** Code and message, as far as they fit; cut at a whole character. */
export function closeReason({ code, message }: ServeError): string {
  const text = `${code}: ${message}`;
  const cut = new TextEncoder().encodeInto(text, new Uint8Array(MAX_CLOSE_REASON_BYTES)).read;
  return text.slice(0, cut);
}
