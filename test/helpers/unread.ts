/** Requests whose answers are read only as fast as the test wants, or not at all. */
import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { connectTo } from './connect-to.js';
import type { Server } from './server.js';

export interface UnreadRequest {
  readonly method?: 'POST' | 'GET';
  readonly path?: string;
  /** Sent as JSON. */
  readonly input?: unknown;
  readonly id?: string;
  readonly acceptEncoding?: string;
}

export class UnreadAnswer {
  readonly #socket: Socket;
  #readBytes = 0;
  #rate: NodeJS.Timeout | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Sends the requests in one piece; nothing of their answers is read. Hangs up when the test ends. */
  static async ask(
    t: TestContext,
    { url }: Pick<Server, 'url'>,
    ...requests: readonly UnreadRequest[]
  ): Promise<UnreadAnswer> {
    const socket = await connectTo(url, { paused: true });
    socket.on('error', () => {}); // `rest` reports it
    t.after(() => socket.destroy());
    socket.write(requests.map(textOf).join(''));
    return new UnreadAnswer(socket);
  }

  /** Reads about so many bytes per second from now on. */
  readSlowly(bytesPerS: number): void {
    const everyMs = 20;
    this.#socket.on('data', (piece: Buffer) => {
      this.#readBytes += piece.length;
      this.#socket.pause();
    });
    const startedAtMs = performance.now();
    this.#rate = setInterval(() => {
      const dueBytes = ((performance.now() - startedAtMs) / 1000) * bytesPerS;
      if (this.#readBytes < dueBytes) this.#socket.resume();
    }, everyMs).unref();
  }

  /**
   * Reads the rest as fast as it comes, until there are more than `bytes` or the connection ends. (A reset behind data
   * that was not read looks like an end to Node.)
   */
  async rest(bytes = Infinity): Promise<{ bytes: number; isOpen: boolean }> {
    clearInterval(this.#rate);
    const socket = this.#socket;
    socket.removeAllListeners('data').on('data', (piece: Buffer) => (this.#readBytes += piece.length));
    let isOpen = true;
    await new Promise<void>((resolve) => {
      socket.on('close', () => {
        isOpen = false;
        resolve();
      });
      socket.on('data', () => {
        if (this.#readBytes > bytes) resolve();
      });
      socket.resume();
    });
    socket.destroy();
    return { bytes: this.#readBytes, isOpen };
  }
}

function textOf({ method = 'POST', path = '/', input = {}, id, acceptEncoding }: UnreadRequest): string {
  const body = method === 'POST' ? JSON.stringify(input) : '';
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: test'];
  if (id !== undefined) lines.push(`X-Request-Id: ${id}`);
  if (acceptEncoding !== undefined) lines.push(`Accept-Encoding: ${acceptEncoding}`);
  if (method === 'POST') lines.push('Content-Type: application/json', `Content-Length: ${body.length}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
