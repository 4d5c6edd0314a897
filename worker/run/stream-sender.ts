/** Sends one stream over the channel, within the credit that the front has granted. */
import type { Channel } from '../../protocol/wire/channel.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import { Credit } from './credit.js';
import type { StreamOut } from '../reply/stream.js';

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
