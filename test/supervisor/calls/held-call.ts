/** Held calls and a channel that records what is sent, for tests. */
import type { Channel } from '../../../protocol/wire/channel.js';
import type { Message } from '../../../protocol/wire/messages.js';
import { HeldBatch, type HeldCall } from '../../../supervisor/calls/held-batch.js';
import { newCall } from '../dispatch/calls.js';

export interface HeldCallOptions {
  /** The batch that it joins; one of its own if left out. */
  readonly batch?: HeldBatch;
  readonly acceptedAtMs?: number;
  /** Gets `ok`, `end` or the error's code. */
  readonly onSettled?: (outcome: string) => void;
}

/** A call that its worker has not begun. */
export function sentCall(id: number, options: HeldCallOptions = {}): HeldCall {
  const { batch = new HeldBatch(0), acceptedAtMs = 0, onSettled = () => {} } = options;
  const call = newCall(`r${id}`, { acceptedAtMs, onSettled });
  const held = { id, call, batch, knownBegun: false, clientWait: null };
  batch.calls.push(held);
  return held;
}

/** A call that begins now. */
export function heldCall(id: number, options: HeldCallOptions = {}): HeldCall {
  const held = sentCall(id, options);
  held.batch.begin(held, performance.now());
  return held;
}

/** Records the messages to the worker. */
export class FakeChannel {
  readonly sent: Message[] = [];
  flushes = 0;

  send(message: Message): void {
    this.sent.push(message);
  }

  flush(): void {
    this.flushes += 1;
  }

  get asChannel(): Channel {
    return this as unknown as Channel;
  }
}
