/** Pings a client, and says when it is gone without a word. */
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

  /** Something came: a pong need not, and cannot before a long message has ended. */
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
