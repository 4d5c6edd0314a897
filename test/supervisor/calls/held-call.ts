/** Held calls and a channel, for tests of what a worker's calls need: what is sent is written down. */
import type { Channel } from '../../../protocol/channel.js';
import type { Message } from '../../../protocol/messages.js';
import type { HeldCall } from '../../../supervisor/calls/held-call.js';
import { newJob } from '../dispatch/jobs.js';

/** A call that began at `beganAtMs`. `onSettled` is told `ok`, `end` or the error's code. */
export function heldCall(
  id: number,
  { beganAtMs = performance.now(), onSettled = (_outcome: string): void => {} } = {},
): HeldCall {
  const job = newJob(`r${id}`, { acceptedAtMs: 0, onSettled });
  return { id, job, knownBegun: true, beganAtMs, graceMs: 0, pausedMs: 0, pausedSinceMs: null, turns: null };
}

/** Remembers what was sent to the worker. */
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
