/**
 * Closes a WebSocket from the server's side: the code and reason say why, as a status and an error body do for other
 * calls, and the client has some time to take what was sent before and to say its own goodbye.
 */
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { ErrorCode, ServeError } from '../../../protocol/errors.js';
import { MAX_CLOSE_REASON_BYTES } from '../../../protocol/wire/messages.js';

/** Close codes by error (RFC 6455 section 7.4.1, and 1013 of its registry). Any other error is 1011: the server failed. */
const CLOSE_CODES: Partial<Record<ErrorCode, number>> = {
  SERVE_SHUTTING_DOWN: 1001, // going away
  SERVE_NOT_FOUND: 1008, // against the rules
  SERVE_MODEL_NOT_FOUND: 1008,
  SERVE_VERSION_NOT_FOUND: 1008,
  SERVE_REQUEST_TIMEOUT: 1008,
  SERVE_NOT_BEGUN: 1013, // try again later
  SERVE_NOT_READY: 1013,
  SERVE_QUEUE_FULL: 1013,
  SERVE_QUEUE_TIMEOUT: 1013,
};

export function closeCodeOf({ code }: ServeError): number {
  return CLOSE_CODES[code] ?? 1011;
}

/** The reason holds code and message, as far as they fit; it is cut at a whole character. */
export function closeReason({ code, message }: ServeError): string {
  const text = `${code}: ${message}`;
  const cut = new TextEncoder().encodeInto(text, new Uint8Array(MAX_CLOSE_REASON_BYTES)).read;
  return text.slice(0, cut);
}

/** How long the client may take for its goodbye once it has been told, and for each bit of progress until then. */
const GOODBYE_MS = 2000;

/** A client may have had this much under way when it was told. */
const LATE_BYTES = 64 * 1024;

export class ClosingHandshake {
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout;
  #lateBytes = 0;
  #unsentBytes = Infinity;

  /** Begins once the close frame is on its way. */
  constructor(ws: WebSocket, socket: Socket) {
    this.#ws = ws;
    this.#socket = socket;
    this.#timer = setInterval(() => this.#check(), GOODBYE_MS);
    ws.resume(); // or its goodbye would not be read
  }

  onBytes(bytes: number): void {
    this.#lateBytes += bytes;
    // The client is in the midst of a message, which would be held until it is whole.
    if (this.#lateBytes > LATE_BYTES) this.#socket.removeAllListeners('data').on('data', () => {});
  }

  /** Ends the wait: the connection is gone. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const { bufferedAmount } = this.#ws;
    if (bufferedAmount === 0 || bufferedAmount >= this.#unsentBytes) this.#ws.terminate();
    this.#unsentBytes = bufferedAmount;
  }
}
