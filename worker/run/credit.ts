/** Sends what a call streams, within the credit that the front has granted. */
import type { Channel } from '../../protocol/wire/channel.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { StreamOut } from '../reply/stream.js';

/** The bytes that a call may send before the front grants more. Only one sender at a time may wait. */
export class Credit {
  #bytes: number;
  #wake: (() => void) | null = null;
  cancelled = false;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  spend(bytes: number): void {
    this.#bytes -= bytes;
  }

  /**
   * Returns null if something may be sent now, otherwise a promise that resolves once it may, or once the call is
   * cancelled.
   */
  wait(): Promise<void> | null {
    if (this.#bytes > 0 || this.cancelled) return null;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  grant(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > 0) this.#release();
  }

  /** Releases a waiting sender, because no client reads its data any more. */
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

/** Sends one stream over the channel. */
export class StreamSender extends Credit implements StreamOut {
  readonly #channel: Channel;
  readonly #id: number;
  /** True once the client has received the status, so that no other answer can replace it. */
  begun = false;

  constructor(channel: Channel, id: number, windowBytes: number) {
    super(windowBytes);
    this.#channel = channel;
    this.#id = id;
  }

  head(head: ReplyHead): void {
    this.begun = true;
    this.#channel.send({ type: 'head', id: this.#id, ...head });
  }

  chunk(bytes: Uint8Array): void {
    this.spend(bytes.length);
    // The app may reuse its buffer after yielding it, while the channel may not have written it to the kernel yet.
    this.#channel.send({ type: 'chunk', id: this.#id }, Buffer.from(bytes));
    this.#channel.flush();
  }
}
