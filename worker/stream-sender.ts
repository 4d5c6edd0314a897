/** One stream's way out over the channel, within the credit the front has granted. */
import type { Channel } from '../protocol/channel.js';
import type { ReplyHead } from '../protocol/messages.js';
import type { StreamOut } from './reply/stream.js';

export class StreamSender implements StreamOut {
  readonly #channel: Channel;
  readonly #id: number;
  #creditBytes: number;
  #wake: (() => void) | null = null;
  cancelled = false;

  constructor(channel: Channel, id: number, windowBytes: number) {
    this.#channel = channel;
    this.#id = id;
    this.#creditBytes = windowBytes;
  }

  head(head: ReplyHead): void {
    this.#channel.send({ type: 'head', id: this.#id, ...head });
  }

  chunk(bytes: Uint8Array): void {
    this.#creditBytes -= bytes.length;
    // The app may reuse its buffer after yielding it, and the stream may not be in the kernel by then.
    this.#channel.send({ type: 'chunk', id: this.#id }, Buffer.from(bytes));
    this.#channel.flush();
  }

  credit(): Promise<void> | null {
    if (this.#creditBytes > 0 || this.cancelled) return null;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  grant(bytes: number): void {
    this.#creditBytes += bytes;
    if (this.#creditBytes > 0) this.#release();
  }

  cancel(): void {
    this.cancelled = true;
    this.#release();
  }

  #release(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
