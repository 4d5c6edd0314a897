/**
 * In a call that streams or talks, either the app has to act, and the run clock runs, or the client has to read or say
 * something, and the clock may stand still. An app that waits for its client while it works counts as waiting: only it
 * could tell the difference.
 */
import { STREAM_WINDOW_BYTES } from '../../protocol/wire/messages.js';

/** The clock that the call shares with those that began together with it. */
export interface PausableClock {
  /** Whose turn it is may have changed. */
  setClock(): void;
  /** The call has something new to do. */
  restartClock(): void;
}

export class ClientWait {
  readonly #clock: PausableClock;
  /** Bytes that the worker sent and the client has not taken. */
  #unreadBytes = 0;
  /** Count of `data` frames sent to the worker. */
  #sentParts = 0;
  #isWaiting = false;

  constructor(clock: PausableClock) {
    this.#clock = clock;
  }

  /** Whether the client has to act. */
  get isOn(): boolean {
    return this.#isWaiting || this.#unreadBytes >= STREAM_WINDOW_BYTES;
  }

  /** The worker sent something for the client. */
  onSent(bytes: number): void {
    this.#unreadBytes += bytes;
    this.#clock.setClock();
  }

  /** The client took it. */
  onTaken(bytes: number): void {
    this.#unreadBytes -= bytes;
    this.#clock.setClock();
  }

  /** The client said something: its answer has the whole run timeout, however long they have talked. */
  onSaid(): void {
    this.#sentParts += 1;
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#clock.restartClock();
    this.#clock.setClock();
  }

  /** The app has had so many parts and waits for the next one. Returns false if one is on its way to it. */
  onWaiting(receivedParts: number): boolean {
    if (receivedParts !== this.#sentParts) return false;
    this.#isWaiting = true;
    this.#clock.setClock();
    return true;
  }
}
