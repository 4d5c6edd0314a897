/**
 * Finds out in two ways that a WebSocket's client is gone: it answers no ping, or says nothing while the app waits for
 * it.
 */
import type { WebSocket } from 'ws';

/** Common proxies cut a connection on which nothing moved for 60 s. */
const PING_MS = 30_000;

export class Heartbeat {
  readonly #ws: Pick<WebSocket, 'isPaused' | 'ping' | 'terminate'>;
  readonly #timer: NodeJS.Timeout;
  #isAlive = true;

  constructor(ws: Pick<WebSocket, 'isPaused' | 'ping' | 'terminate'>) {
    this.#ws = ws;
    this.#timer = setInterval(() => this.#beat(), PING_MS);
  }

  /** Notes that bytes came, which is as good as a pong: a pong cannot come before a long message has ended. */
  onBytes(): void {
    this.#isAlive = true;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    if (this.#ws.isPaused) return; // its pong would not be read
    if (!this.#isAlive) {
      this.#ws.terminate();
      return;
    }
    this.#isAlive = false;
    this.#ws.ping();
  }
}

/** The longest time for one message, as for one request (`http/socket/http-server.ts`). */
const MESSAGE_MS = 30 * 60_000;

/** Bounds how long an app waits for a client that says nothing, and that is told nothing. */
export class SilenceLimit {
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

  /** Begins to wait: at most `limitMs` from now on, or since the last `break`. */
  begin(limitMs: number): void {
    this.end();
    this.#limitMs = limitMs;
    this.#wait();
  }

  /** Starts the time anew while the app still waits: something was said to the client, or it sent part of a message. */
  break(): void {
    if (this.#timer !== null) this.#wait();
  }

  /** Notes that part of a message came: that is no silence, unless the message takes for ever. */
  onPart(): void {
    this.#messageSinceMs ??= performance.now();
    if (performance.now() - this.#messageSinceMs < MESSAGE_MS) this.break();
  }

  /** Stops waiting: the client has said something, or the app waits no more. */
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
