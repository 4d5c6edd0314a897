/** HTTP written by hand, for what a well-behaved client never does. Replies are read one by one, in their order. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { connectTo } from './connect-to.js';
import { eventually, type Server } from './server.js';

export interface RawReply {
  readonly statusLine: string;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const LIMIT_MS = 60_000;

export class RawConnection {
  readonly socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #state: 'open' | 'ended' | 'reset' = 'open';

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => (this.#received = Buffer.concat([this.#received, chunk])));
    socket.on('end', () => (this.#state = 'ended'));
    socket.on('error', () => (this.#state = 'reset'));
    socket.on('close', () => (this.#state = this.#state === 'open' ? 'ended' : this.#state));
  }

  /** `allowHalfOpen`: does not hang up when the server does. */
  static async open({ url }: Pick<Server, 'url'>, allowHalfOpen = false): Promise<RawConnection> {
    return new RawConnection(await connectTo(url, { allowHalfOpen }));
  }

  /** Sends on a connection of its own, reads one reply, hangs up. */
  static async ask(server: Pick<Server, 'url'>, text: string): Promise<RawReply> {
    const connection = await RawConnection.open(server);
    connection.send(text);
    const reply = await connection.reply();
    connection.destroy();
    return reply;
  }

  /** Bytes that have arrived and are not part of a reply yet. */
  get rest(): string {
    return this.#received.toString('latin1');
  }

  send(text: string | Uint8Array): void {
    this.socket.write(text);
  }

  /** A whole request; `headers` as lines. */
  post(body: string, headers: readonly string[] = [], path = '/'): void {
    const lines = [
      `POST ${path} HTTP/1.1`,
      'Host: test',
      `Content-Length: ${Buffer.byteLength(body)}`,
      ...headers,
    ];
    this.send(`${lines.join('\r\n')}\r\n\r\n${body}`);
  }

  get(path: string): void {
    this.send(`GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`);
  }

  /** The next reply, whole. Rejects if the connection ends before. */
  async reply(limitMs = LIMIT_MS): Promise<RawReply> {
    let reply = this.#take();
    await eventually(
      () => (reply ??= this.#take()) !== null || this.#state !== 'open',
      limitMs,
      () => `a reply; received: ${JSON.stringify(this.rest)}`,
    );
    reply ??= this.#take();
    assert.ok(reply !== null, `the connection ${this.#state} within a reply: ${JSON.stringify(this.rest)}`);
    return reply;
  }

  /** Resolves once the received bytes hold `text`. */
  async received(text: string, limitMs = LIMIT_MS): Promise<void> {
    await eventually(
      () => this.rest.includes(text),
      limitMs,
      () => `${text} in ${JSON.stringify(this.rest)}`,
    );
  }

  /** Resolves with the way in which the server ended the connection; rejects if it does not. */
  async closed(limitMs = LIMIT_MS): Promise<'ended' | 'reset'> {
    await eventually(
      () => this.#state !== 'open',
      limitMs,
      () => 'the connection is open',
    );
    return this.#state as 'ended' | 'reset';
  }

  destroy(): void {
    this.socket.destroy();
  }

  #take(): RawReply | null {
    const text = this.rest;
    const headEnd = text.indexOf('\r\n\r\n');
    if (headEnd < 0) return null;
    const [statusLine = '', ...lines] = text.slice(0, headEnd).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 2),
      ]),
    );
    const status = Number(statusLine.split(' ')[1]);
    const bodyStart = headEnd + 4;
    const bodyEnd = status < 200 ? bodyStart : bodyStart + Number(headers['content-length'] ?? NaN);
    if (!(this.#received.length >= bodyEnd)) return null;
    const body = this.#received.toString('utf8', bodyStart, bodyEnd);
    this.#received = this.#received.subarray(bodyEnd);
    return { statusLine, status, headers, body };
  }
}
