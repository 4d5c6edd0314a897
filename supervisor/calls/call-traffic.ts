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
  send(call: HeldCall, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    clientWaitOf(call).onClientMessage();
    this.#channel.send({ type: 'data', id: call.id, ...part }, bytes);
    this.#flushSoon();
  }

  /** Passes on a part of a streamed answer. */
  onChunk(call: HeldCall, pieces: Buffer[]): void {
    if (call.job.settled) return; // cancelled: the worker needs no credit any more
    call.job.chunk(pieces, this.#onceTaken(call, totalBytes(pieces)));
  }

  /** Handles a message of a WebSocket's app. @throws SERVE_PROTOCOL if the call is not a WebSocket */
  onConversation(call: HeldCall, message: ConversationMessage, pieces: Buffer[]): void {
    const { job, id } = call;
    const { conversation } = job;
    if (conversation === null) throw protocolError(`${message.type} in call ${id}, which is not a WebSocket`);
    if (job.settled) return;
    if (message.type === 'data') {
      const cost = totalBytes(pieces) + DATA_OVERHEAD_BYTES;
      conversation.data(message, pieces, this.#onceTaken(call, cost));
    } else if (message.type === 'credit') conversation.credit(message.bytes);
    else if (message.type === 'close') conversation.close(message.code, message.reason);
    else if (clientWaitOf(call).onWaiting(message.received)) conversation.waiting();
  }

  /** Counts bytes sent to the client; the function returned is called once the client has taken them, and grants as much again. */
  #onceTaken(call: HeldCall, bytes: number): () => void {
    const wait = clientWaitOf(call);
    wait.onSent(bytes);
    return () => {
      wait.onRead(bytes);
      this.#channel.send({ type: 'credit', id: call.id, bytes });
      this.#flushSoon();
    };
  }
}
