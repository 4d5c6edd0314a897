/**
 * The app's end of a WebSocket call.
 *
 * Incoming parts become messages, which wait for the app to `receive` them; each one taken gives its credit back to the
 * client. Outgoing messages leave in the order of `send`, in parts, within the credit that the front has granted.
 */
import { totalBytes } from '../../protocol/wire/body-assembler.js';
import { isCloseCode } from '../../protocol/wire/fields.js';
import type { Channel } from '../../protocol/wire/channel.js';
import {
  DATA_OVERHEAD_BYTES,
  MAX_CLOSE_REASON_BYTES,
  MAX_FRAGMENT_BYTES,
} from '../../protocol/wire/limits.js';
import type { Message } from '../../protocol/wire/messages.js';
import type { WebSocketConnection } from '../api/types.js';
import { Credit } from './credit.js';

interface Received {
  readonly message: string | Uint8Array;
  /**
   * Credit in bytes that is given back when the message is taken: that of its last part. Earlier parts gave theirs back
   * on arrival.
   */
  readonly credit: number;
}

export class CallSocket implements WebSocketConnection {
  readonly #channel: Channel;
  readonly #id: number;
  readonly #credit: Credit;
  #parts: Uint8Array[] = [];
  #inbox: Received[] = [];
  #receivers: ((message: string | Uint8Array | null) => void)[] = [];
  #receivedFrames = 0;
  /** Settles when the last of the sends has settled, and never rejects. */
  #sends: Promise<void> = Promise.resolve();
  #isClosed = false;
  /** True once the call has ended: the front has forgotten it. */
  #hasEnded = false;

  /** `windowBytes` is the number of bytes that may be in flight in each direction. */
  constructor(channel: Channel, id: number, windowBytes: number) {
    this.#channel = channel;
    this.#id = id;
    this.#credit = new Credit(windowBytes);
    this.#post({ type: 'credit', id, bytes: windowBytes });
  }

  /** True once the client has left. */
  get cancelled(): boolean {
    return this.#credit.cancelled;
  }

  async receive(): Promise<string | Uint8Array | null> {
    const first = this.#inbox.shift();
    if (first !== undefined) {
      this.#post({ type: 'credit', id: this.#id, bytes: first.credit });
      return first.message;
    }
    if (this.cancelled || this.#isClosed || this.#hasEnded) return null;
    this.#sendWaiting();
    return new Promise((resolve) => this.#receivers.push(resolve));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string | Uint8Array, void> {
    for (let message = await this.receive(); message !== null; message = await this.receive()) yield message;
  }

  send(message: string | Uint8Array): Promise<void> {
    const isText = typeof message === 'string';
    if (!isText && !(message instanceof Uint8Array)) {
      throw new TypeError(`send() takes text or a Uint8Array, not ${typeof message}`);
    }
    const bytes = Buffer.from(message as string); // a copy, because the app may reuse its buffer
    return this.#afterSends(() => this.#sendParts(bytes, isText));
  }

  close(code = 1000, reason = ''): Promise<void> {
    if (!isCloseCode(code)) {
      throw new RangeError(`close() takes the code 1000, or one from 3000 to 4999, not ${String(code)}`);
    }
    if (Buffer.byteLength(reason) > MAX_CLOSE_REASON_BYTES) {
      throw new RangeError(`close() takes a reason of up to ${MAX_CLOSE_REASON_BYTES} bytes`);
    }
    const sent = this.#afterSends(() => this.#post({ type: 'close', id: this.#id, code, reason }));
    this.#isClosed = true;
    this.#inbox = [];
    this.#endReceivers();
    return sent;
  }

  /** Takes a part of the client's next message. */
  onData(pieces: readonly Buffer[], isText: boolean, isLast: boolean): void {
    this.#receivedFrames += 1;
    this.#parts.push(...pieces);
    const credit = totalBytes(pieces) + DATA_OVERHEAD_BYTES;
    if (!isLast || this.#isClosed) this.#post({ type: 'credit', id: this.#id, bytes: credit });
    if (!isLast) return;
    const whole = Buffer.concat(this.#parts); // a copy, because the pieces are views of the channel's read buffer
    this.#parts = [];
    if (this.#isClosed) return;
    const message = isText ? whole.toString() : whole;
    const receiver = this.#receivers.shift();
    if (receiver === undefined) {
      this.#inbox.push({ message, credit });
      return;
    }
    this.#post({ type: 'credit', id: this.#id, bytes: credit });
    receiver(message);
    if (this.#receivers.length > 0) this.#sendWaiting();
  }

  grant(bytes: number): void {
    this.#credit.grant(bytes);
  }

  /** Called when the client has left. Messages that it sent before can still be received. */
  cancel(): void {
    this.#credit.cancel();
    this.#endReceivers();
  }

  /** Resolves once the app's messages have been sent to the front. */
  async flushed(): Promise<void> {
    await this.#sends;
  }

  /** Ends the connection for the app: later sends have no effect. */
  end(): void {
    this.#hasEnded = true;
    this.cancel();
  }

  #sendWaiting(): void {
    this.#post({ type: 'waiting', id: this.#id, received: this.#receivedFrames });
  }

  #endReceivers(): void {
    for (const receiver of this.#receivers.splice(0)) receiver(null);
  }

  #afterSends(step: () => void | Promise<void>): Promise<void> {
    const wasClosed = this.#isClosed;
    const done = this.#sends.then(() => {
      if (wasClosed || this.cancelled) throw closed();
      return step();
    });
    this.#sends = done.catch(() => {}); // an app need not handle the rejection of `done`
    return done;
  }

  async #sendParts(bytes: Buffer, text: boolean): Promise<void> {
    let offset = 0;
    do {
      const credit = this.#credit.wait();
      if (credit !== null) await credit;
      if (this.cancelled) throw closed();
      const part = bytes.subarray(offset, offset + MAX_FRAGMENT_BYTES);
      offset += part.length;
      this.#credit.spend(part.length + DATA_OVERHEAD_BYTES);
      this.#post({ type: 'data', id: this.#id, text, last: offset === bytes.length }, part);
    } while (offset < bytes.length);
  }

  #post(message: Message, body?: Uint8Array): void {
    if (this.#hasEnded) return;
    this.#channel.send(message, body);
    this.#channel.flush();
  }
}

/** The errors with which `send` rejects once the connection is closed. */
const CLOSED = new WeakSet<object>();

function closed(): DOMException {
  const error = new DOMException('The WebSocket is closed.', 'AbortError');
  CLOSED.add(error);
  return error;
}

/** Whether a rejection only means that a client has left, which is harmless if the app does not handle it. */
export function isClosedSocket(reason: unknown): boolean {
  return typeof reason === 'object' && reason !== null && CLOSED.has(reason);
}
