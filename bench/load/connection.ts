/** One keep-alive connection that sends the same bytes again and again and reports each reply. */
import { Socket } from 'node:net';
import { ReplyReader } from './reply-reader.js';
import type { Target } from './request-bytes.js';

const READ_BUFFER_BYTES = 256 * 1024;

export interface ConnectionHandlers {
  onReply(connection: Connection, status: number, latencyMs: number): void;
  /** The request in flight was lost, or the server closed; a new connection replaces this one. */
  onBroken(connection: Connection, wasBusy: boolean): void;
}

export class Connection {
  readonly #target: Target;
  readonly #handlers: ConnectionHandlers;
  readonly #buffer: Buffer;
  #socket: Socket;
  #sentAtMs = 0;
  #busy = false;
  bytesRead = 0;

  /** `buffer` may be shared: a chunk is read before the next can arrive. */
  constructor(target: Target, handlers: ConnectionHandlers, buffer: Buffer) {
    this.#target = target;
    this.#handlers = handlers;
    this.#buffer = buffer;
    this.#socket = this.#connect();
  }

  send(bytes: Buffer): void {
    this.#busy = true;
    this.#sentAtMs = performance.now();
    if (this.#socket.destroyed) this.#socket = this.#connect();
    this.#socket.write(bytes);
  }

  destroy(): void {
    this.#busy = false;
    this.#socket.removeAllListeners('close').destroy();
  }

  #connect(): Socket {
    const reader = new ReplyReader((status, closing) => {
      this.#busy = false;
      if (closing) socket.destroy();
      this.#handlers.onReply(this, status, performance.now() - this.#sentAtMs);
    });
    const options = {
      onread: { buffer: this.#buffer, callback: (bytes: number) => this.#read(reader, bytes) },
    };
    // `onread` saves an allocation per read; it is an option of the constructor that the types know on connect only.
    const socket = new Socket(options as ConstructorParameters<typeof Socket>[0]);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => {
      if (socket !== this.#socket) return; // another connection has replaced this one
      const wasBusy = this.#busy;
      this.#busy = false;
      this.#handlers.onBroken(this, wasBusy);
    });
    socket.connect(this.#target.port, this.#target.host);
    return socket;
  }

  #read(reader: ReplyReader, bytes: number): boolean {
    this.bytesRead += bytes;
    reader.push(this.#buffer.subarray(0, bytes));
    return true;
  }
}

export function readBuffer(): Buffer {
  return Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
}
