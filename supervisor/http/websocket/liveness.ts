/**
 * Detects in two ways that a WebSocket's client is gone: it does not answer a ping, or it sends nothing while the app
 * waits for it.
 */
import type { WebSocket } from 'ws';
import { startLimit, type LimitTimer } from '../../machine/limit-timer.js';

/** Below 60 s, after which common proxies cut an idle connection. */
const PING_MS = 30_000;

/** Pings the client until `stop`. `onBytes`: bytes arrived, which counts like a pong, as a pong cannot arrive before a long message has ended. */
export function startHeartbeat(ws: Pick<WebSocket, 'isPaused' | 'ping' | 'terminate'>) {
  let isAlive = true;
  let immediate: NodeJS.Immediate | undefined;
  const beat = (): void => {
    if (ws.isPaused) return; // its pong would not be read
    if (!isAlive) return ws.terminate();
    isAlive = false;
    ws.ping();
  };
  // After reading: if this process was suspended, a pong may wait unread in the socket.
  const timer = setInterval(() => (immediate = setImmediate(beat)), PING_MS);
  return {
    onBytes: () => {
      isAlive = true;
    },
    stop: () => {
      clearInterval(timer);
      clearImmediate(immediate);
    },
  };
}

/** The longest time for one message, as for one request (`http/socket/http-server.ts`). */
const MESSAGE_MS = 30 * 60_000;

/** Bounds how long an app waits for a client while nothing is sent in either direction. */
export class SilenceLimit {
  readonly #onTooLong: () => void;
  #timer: LimitTimer | null = null;
  #limitMs = 0;
  #messageSinceMs: number | null = null;

  constructor(onTooLong: () => void) {
    this.#onTooLong = onTooLong;
  }

  get isRunning(): boolean {
    return this.#timer !== null;
  }

  /** Starts the limit: `limitMs` from now on, or from the last `break`. */
  begin(limitMs: number): void {
    this.end();
    this.#limitMs = limitMs;
    this.#wait();
  }

  /** Restarts the time while the app still waits: something was sent to the client, or part of a message arrived. */
  break(): void {
    if (this.#timer !== null) this.#wait();
  }

  /** Notes that part of a message arrived: that is not silence, unless the message takes longer than its limit. */
  onPart(): void {
    this.#messageSinceMs ??= performance.now();
    if (performance.now() - this.#messageSinceMs < MESSAGE_MS) this.break();
  }

  /** Stops the limit: a message has arrived, or the app no longer waits. */
  end(): void {
    this.#timer?.stop();
    this.#timer = null;
    this.#messageSinceMs = null;
  }

  #wait(): void {
    this.#timer?.stop();
    this.#timer = startLimit(this.#limitMs, this.#onTooLong);
  }
}
