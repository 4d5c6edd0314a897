/**
 * Passes messages between a worker and the clients of its streaming calls and WebSockets: parts of answers go to the client,
 * credit for more goes to the worker, messages of a WebSocket go both ways. Each of them may change whether the call waits for its client (`client-wait.ts`).
 */
import { totalBytes } from '../../protocol/wire/body-assembler.js';
import type { Channel } from '../../protocol/wire/channel.js';
import { protocolError } from '../../protocol/errors.js';
import { DATA_OVERHEAD_BYTES, type DataPart, type Message } from '../../protocol/wire/messages.js';
import { clientWaitOf, type HeldCall } from './held-batch.js';

export type ConversationMessage = Message & { type: 'data' | 'credit' | 'waiting' | 'close' };

export class CallTraffic {
  readonly #channel: Channel;
  readonly #flushSoon: () => void;

  /** `flushSoon` flushes the channel, at the latest at the end of this turn of the event loop. */
  constructor(channel: Channel, flushSoon: () => void) {
    this.#channel = channel;
    this.#flushSoon = flushSoon;
  }

  /** Sends a message of the client of a WebSocket to the worker. */
  send(held: HeldCall, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    clientWaitOf(held).onClientMessage();
    this.#channel.send({ type: 'data', id: held.id, ...part }, bytes);
    this.#flushSoon();
  }

  /** Passes on a part of a streamed answer. */
  onChunk(held: HeldCall, pieces: Buffer[]): void {
    if (held.call.settled) return; // cancelled: the worker needs no credit any more
    held.call.chunk(pieces, this.#onceTaken(held, totalBytes(pieces)));
  }

  /** Handles a message of a WebSocket's app. @throws SERVE_PROTOCOL if the call is not a WebSocket */
  onConversation(held: HeldCall, message: ConversationMessage, pieces: Buffer[]): void {
    const { call, id } = held;
    const { conversation } = call;
    if (conversation === null) throw protocolError(`${message.type} in call ${id}, which is not a WebSocket`);
    if (call.settled) return;
    if (message.type === 'data') {
      const cost = totalBytes(pieces) + DATA_OVERHEAD_BYTES;
      conversation.data(message, pieces, this.#onceTaken(held, cost));
    } else if (message.type === 'credit') conversation.credit(message.bytes);
    else if (message.type === 'close') conversation.close(message.code, message.reason);
    else if (clientWaitOf(held).onWaiting(message.received)) conversation.waiting();
  }

  /** Counts bytes sent to the client; the function returned is called once the client has taken them, and grants as much again. */
  #onceTaken(held: HeldCall, bytes: number): () => void {
    const wait = clientWaitOf(held);
    wait.onSent(bytes);
    return () => {
      wait.onRead(bytes);
      this.#channel.send({ type: 'credit', id: held.id, bytes });
      this.#flushSoon();
    };
  }
}
