/**
 * In a call that streams or talks, either the app has to act, and its run clock runs, or the client has to read or say
 * something, and the clock stands still. An app that waits for its client while it works counts as waiting: only it could
 * tell the difference.
 */
import { STREAM_WINDOW_BYTES } from '../../protocol/messages.js';
import { restart, resume, type ClockedCall } from './run-clock.js';

export class Turns {
  readonly #call: ClockedCall;
  /** Bytes that the worker sent and the client has not taken. */
  #unreadBytes = 0;
  /** Count of `data` frames sent to the worker. */
  #sentParts = 0;
  #isWaiting = false;

  constructor(call: ClockedCall) {
    this.#call = call;
  }

  /** The worker sent something for the client. */
  onSent(bytes: number): void {
    this.#unreadBytes += bytes;
    this.#setClock();
  }

  /** The client took it. */
  onTaken(bytes: number): void {
    this.#unreadBytes -= bytes;
    this.#setClock();
  }

  /** The client said something: its answer has the whole run timeout, however long they have talked. */
  onSaid(): void {
    this.#sentParts += 1;
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    restart(this.#call);
    this.#setClock();
  }

  /** The app has had so many parts and waits for the next one. Returns false if one is on its way to it. */
  onWaiting(receivedParts: number): boolean {
    if (receivedParts !== this.#sentParts) return false;
    this.#isWaiting = true;
    this.#setClock();
    return true;
  }

  #setClock(): void {
    if (!this.#isWaiting && this.#unreadBytes < STREAM_WINDOW_BYTES) resume(this.#call);
    else this.#call.pausedSinceMs ??= performance.now();
  }
}
