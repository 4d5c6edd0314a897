/** Held calls, and a worker and a channel that record what is sent, for tests. */
import assert from 'node:assert/strict';
import { PassThrough, type Writable } from 'node:stream';
import type { BegunNote } from '../../../protocol/wire/begun-note.js';
import type { Channel } from '../../../protocol/wire/channel.js';
import type { Message } from '../../../protocol/wire/messages.js';
import { CallWorker } from '../../../supervisor/calls/call-worker.js';
import { HeldBatch, HeldCall } from '../../../supervisor/calls/held-batch.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
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
  const held = new HeldCall(id, call, batch);
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

/** A worker whose messages the test gives by hand. */
export class HandWorker extends CallWorker {
  readonly #onFinished: (call: Call, runMs: number | null) => void;

  constructor(
    framesOut: Writable,
    readBegun: () => BegunNote,
    finished: (call: Call, runMs: number | null) => void,
  ) {
    const limits = { runTimeout: { ms: 60_000, name: '--run-timeout' }, maxOutputBytes: 1000 };
    super(0, new PassThrough(), framesOut, readBegun, limits);
    this.#onFinished = finished;
  }

  take(message: Message, pieces: Buffer[]): boolean {
    return this.answers.take(message, pieces);
  }

  close(): void {
    this.timeout.close();
  }

  onMessage(): void {
    assert.fail('answers are given by hand');
  }

  onEnd(): void {}

  protected onFinished(call: Call, runMs: number | null): void {
    this.#onFinished(call, runMs);
  }

  onCallError(): void {}

  leave(): void {
    assert.fail('nothing takes so long');
  }

  kill(cause: string): void {
    assert.fail(cause);
  }
}
