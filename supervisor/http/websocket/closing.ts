/**
 * Closes a WebSocket from the server's side. The close code and reason give the cause, as a status and an error body do
 * for other calls; the client then has some time to read what was sent before and to answer with its own close frame.
 */
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { isAppsRefusal, type ErrorCode, type ServeError } from '../../../protocol/errors.js';
import { MAX_CLOSE_REASON_BYTES } from '../../../protocol/wire/limits.js';

/** Close codes by error (RFC 6455 section 7.4.1, and 1013 of its registry). Any other error is 1011: the server failed. */
const CLOSE_CODES: Partial<Record<ErrorCode, number>> = {
  SERVE_SHUTTING_DOWN: 1001, // going away
  SERVE_NOT_FOUND: 1008, // policy violation
  SERVE_MODEL_NOT_FOUND: 1008,
  SERVE_VERSION_NOT_FOUND: 1008,
  SERVE_REQUEST_TIMEOUT: 1008,
  SERVE_NOT_BEGUN: 1013, // try again later
  SERVE_NOT_READY: 1013,
  SERVE_QUEUE_FULL: 1013,
  SERVE_QUEUE_TIMEOUT: 1013,
};

export function closeCodeOf(error: ServeError): number {
  return isAppsRefusal(error) ? 1008 : (CLOSE_CODES[error.code] ?? 1011);
}

/** Builds the close reason from code, an app's own status and message, as far as they fit; it is cut at a whole character. */
export function closeReason({ code, status, message }: ServeError): string {
  const text = code === 'SERVE_HTTP_ERROR' ? `${code}: ${status} ${message}` : `${code}: ${message}`;
  const cut = new TextEncoder().encodeInto(text, new Uint8Array(MAX_CLOSE_REASON_BYTES)).read;
  return text.slice(0, cut);
}

/** The time for the client to answer the close frame, and for each bit of progress in reading until then. */
const CLOSE_TIMEOUT_MS = 2000;

/** A client may have sent this much before it received the close frame. */
const LATE_BYTES = 64 * 1024;

/**
 * Waits for the client's close frame; call it once ours has been written. `onBytes`: the client has sent more. `stop`: the
 * connection is gone.
 */
export function startClosing(ws: WebSocket, socket: Socket) {
  let lateBytes = 0;
  let unsentBytes = Infinity;
  const timer = setInterval(() => {
    const { bufferedAmount } = ws;
    if (bufferedAmount === 0 || bufferedAmount >= unsentBytes) ws.terminate();
    unsentBytes = bufferedAmount;
  }, CLOSE_TIMEOUT_MS);
  ws.resume(); // or its close frame would not be read
  return {
    onBytes: (bytes: number) => {
      lateBytes += bytes;
      // The client is still sending a message, which would be held in memory until it is complete.
      if (lateBytes > LATE_BYTES) socket.removeAllListeners('data').on('data', () => {});
    },
    stop: () => clearInterval(timer),
  };
}
