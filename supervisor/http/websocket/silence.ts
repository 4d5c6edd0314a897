/** How long an app has waited for a client that says nothing, and that is told nothing. */

/** One message may not take longer, as one request may not (`http/socket/http-server.ts`). */
const MESSAGE_MS = 30 * 60_000;

export class Silence {
  readonly #onTooLong: () => void;
  #timer: NodeJS.Timeout | null = null;
  #limitMs = 0;
  #messageSinceMs: number | null = null;

  constructor(onTooLong: () => void) {
    this.#onTooLong = onTooLong;
  }

  get isRunning(): boolean {
    return this.#timer !== null;
  }

  /** The app waits; at most so long from now on, or since the last `break`. */
  begin(limitMs: number): void {
    this.end();
    this.#limitMs = limitMs;
    this.#wait();
  }

  /** Something was said, and the app waits still: to the client, or a part of a message by it. */
  break(): void {
    if (this.#timer !== null) this.#wait();
  }

  /** Part of a message came: that is no silence, unless the message takes for ever. */
  onPart(): void {
    this.#messageSinceMs ??= performance.now();
    if (performance.now() - this.#messageSinceMs < MESSAGE_MS) this.break();
  }

  /** The client has said something, or nobody waits any more. */
  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#messageSinceMs = null;
  }

  #wait(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onTooLong, this.#limitMs);
  }
}
