/**
 * Holds a client's messages on their way to the worker: complete messages wait here until the worker takes them in
 * parts. It is bounded: nothing is read from the client while a full window waits, and all of it counts against
 * `--queue-bytes`.
 */
import {
  DATA_OVERHEAD_BYTES,
  MAX_FRAGMENT_BYTES,
  STREAM_WINDOW_BYTES,
} from '../../../protocol/wire/limits.js';
import type { DataPart } from '../../../protocol/wire/messages.js';
import { FRAGMENT_OVERHEAD_BYTES } from './frame-reads.js';

/** A client's frame takes at least this many bytes besides its payload (RFC 6455 section 5.2). */
const FRAME_HEAD_BYTES = 6;

/** The longest ping: 125 bytes of payload. This many bytes of an incomplete message may be the beginning of one. */
const MAX_CONTROL_FRAME_BYTES = FRAME_HEAD_BYTES + 125;

/** A read takes this much memory besides its bytes while any part of it is held, even a single byte. */
const READ_OVERHEAD_BYTES = 256;

/** A message of this size is cheaper to keep where it was read than to copy. */
const LARGE_MESSAGE_BYTES = 8 * 1024;

interface Message {
  readonly bytes: Buffer;
  readonly text: boolean;
  offset: number;
}

export class Outbox {
  /** Reports how many more bytes are held, or fewer (negative). @throws SERVE_QUEUE_FULL */
  readonly #count: (bytes: number) => void;
  #messages: Message[] = [];
  #waitingBytes = 0;
  /** Bytes of an incomplete message; roughly, as one read may bring the beginning of the next. */
  #partialBytes = 0;
  /**
   * Memory that the incomplete message keeps alive besides its bytes: whole reads, with the pings between its parts.
   */
  #besideBytes = 0;
  /** The same of its fragments, of which the parser keeps each by itself. */
  #fragmentBytes = 0;
  #countedBytes = 0;
  /** Bytes that the worker accepts now. */
  #creditBytes = 0;

  constructor(count: (bytes: number) => void) {
    this.#count = count;
  }

  get isEmpty(): boolean {
    return this.#messages.length === 0;
  }

  get isFull(): boolean {
    return this.#waitingBytes >= STREAM_WINDOW_BYTES;
  }

  /** Bytes of an incomplete message; 0 between messages. */
  get partialBytes(): number {
    return this.#partialBytes;
  }

  /**
   * Counts bytes that arrived, before it is known what they are. `fragments`: those of the message that is incomplete
   * after them. @throws SERVE_QUEUE_FULL
   */
  onBytes(bytes: number, fragments: number): void {
    this.#fragmentBytes = fragments * FRAGMENT_OVERHEAD_BYTES;
    this.#partialBytes += bytes;
    this.#besideBytes += READ_OVERHEAD_BYTES;
    this.#recount();
  }

  /** Subtracts a ping or a pong from the count, unless parts of a message were read with it. */
  onControlFrame(payloadBytes: number): void {
    const bytes = Math.min(this.#partialBytes, payloadBytes + FRAME_HEAD_BYTES);
    this.#partialBytes -= bytes;
    this.#besideBytes = this.#partialBytes <= MAX_CONTROL_FRAME_BYTES ? 0 : this.#besideBytes + bytes;
    this.#recount();
  }

  /** Takes a complete message. A small one is copied: it would keep alive the 64 KiB that were read with it. */
  push(message: Buffer, text: boolean): void {
    const bytes = message.length < LARGE_MESSAGE_BYTES ? copyOf(message) : message;
    this.#partialBytes = 0;
    this.#besideBytes = 0;
    this.#messages.push({ bytes, text, offset: 0 });
    this.#waitingBytes += bytes.length + DATA_OVERHEAD_BYTES;
  }

  grant(bytes: number): void {
    this.#creditBytes += bytes;
  }

  /** Passes to `send` as many bytes as the worker accepts. @throws SERVE_QUEUE_FULL */
  drain(send: (part: Omit<DataPart, 'id'>, bytes: Buffer) => void): void {
    for (let [message] = this.#messages; message !== undefined; [message] = this.#messages) {
      if (this.#creditBytes <= 0) break;
      const { bytes, text, offset } = message;
      const part = bytes.subarray(offset, offset + MAX_FRAGMENT_BYTES);
      message.offset += part.length;
      const last = message.offset === bytes.length;
      this.#creditBytes -= part.length + DATA_OVERHEAD_BYTES;
      send({ text, last }, part);
      if (!last) continue;
      this.#messages.shift();
      this.#waitingBytes -= bytes.length + DATA_OVERHEAD_BYTES;
    }
    this.#recount();
  }

  /**
   * Drops the waiting messages, which are no longer needed. An incomplete message is held, and counted, until the
   * connection is gone.
   */
  clear(): void {
    this.#messages = [];
    this.#waitingBytes = 0;
    this.#partialBytes = Math.min(this.#partialBytes, this.#countedBytes); // not the bytes for which there was no room
    this.#besideBytes = Math.min(this.#besideBytes, this.#countedBytes - this.#partialBytes);
    this.#fragmentBytes = Math.min(
      this.#fragmentBytes,
      this.#countedBytes - this.#partialBytes - this.#besideBytes,
    );
    this.#recount();
  }

  /** Forgets an incomplete message: the connection is gone. */
  onGone(): void {
    this.#partialBytes = 0;
    this.#besideBytes = 0;
    this.#fragmentBytes = 0;
    this.#recount();
  }

  #recount(): void {
    const heldBytes = this.#partialBytes + this.#besideBytes + this.#fragmentBytes + this.#waitingBytes;
    this.#count(heldBytes - this.#countedBytes);
    this.#countedBytes = heldBytes;
  }
}

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
