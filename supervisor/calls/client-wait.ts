/**
 * Tells whether a streaming call or a WebSocket waits for its client, which has to read or send something: then the run clock
 * may stand still. An app that waits for its client while it works counts as waiting: only it knows the difference.
 */
import { STREAM_WINDOW_BYTES } from '../../protocol/wire/messages.js';

/** The clock that the calls of a batch share. */
export interface PausableClock {
  /** Called when a call may have begun or ended to wait. */
  setClock(): void;
  /** Called when a call has something new to do. */
  restartClock(): void;
}

export class ClientWait {
  readonly #clock: PausableClock;
  /** Bytes that the worker has sent and the client has not read. */
  #unreadBytes = 0;
  /** Number of `data` frames sent to the worker. */
  #sentParts = 0;
  #isWaiting = false;

  constructor(clock: PausableClock) {
    this.#clock = clock;
  }

  /** Whether the call waits for its client. */
  get isOn(): boolean {
    return this.#isWaiting || this.#unreadBytes >= STREAM_WINDOW_BYTES;
  }

  /** The worker has sent bytes to the client. */
  onSent(bytes: number): void {
    this.#unreadBytes += bytes;
    this.#clock.setClock();
  }

  /** The client has read bytes. */
  onRead(bytes: number): void {
    this.#unreadBytes -= bytes;
    this.#clock.setClock();
  }

  /** The client has sent a message: its answer has the whole run timeout. */
  onClientMessage(): void {
    this.#sentParts += 1;
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#clock.restartClock();
    this.#clock.setClock();
  }

  /** The app has received so many parts and waits for the next one. Returns false if one is on its way. */
  onWaiting(receivedParts: number): boolean {
    if (receivedParts !== this.#sentParts) return false;
    this.#isWaiting = true;
    this.#clock.setClock();
    return true;
  }
}
