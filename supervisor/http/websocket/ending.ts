/**
 * The end of a connection that the server has closed: the client gets what was sent before, and time for its own goodbye,
 * and what it goes on saying is thrown away.
 */
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** For the client's goodbye, once it has been told; and for each bit of progress until then. */
const GOODBYE_MS = 2000;

/** What a client may have had under way when it was told. */
const LATE_BYTES = 64 * 1024;

export class Ending {
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout;
  #lateBytes = 0;
  #unsentBytes = Infinity;

  /** After the close frame is on its way. */
  constructor(ws: WebSocket, socket: Socket) {
    this.#ws = ws;
    this.#socket = socket;
    this.#timer = setInterval(() => this.#check(), GOODBYE_MS);
    ws.resume(); // or its goodbye would not be read
  }

  onBytes(bytes: number): void {
    this.#lateBytes += bytes;
    // It is in the midst of a message, which would be held until it is whole.
    if (this.#lateBytes > LATE_BYTES) this.#socket.removeAllListeners('data').on('data', () => {});
  }

  /** The connection is gone. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const { bufferedAmount } = this.#ws;
    if (bufferedAmount === 0 || bufferedAmount >= this.#unsentBytes) this.#ws.terminate();
    this.#unsentBytes = bufferedAmount;
  }
}
