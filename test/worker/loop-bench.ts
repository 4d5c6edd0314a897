/** A run loop whose app and front are the test's. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import type { TestContext } from 'node:test';
import { Channel } from '../../protocol/wire/channel.js';
import type { Call, Message } from '../../protocol/wire/messages.js';
import { NO_WISHES } from '../../worker/api/route-options.js';
import type { Signature } from '../../protocol/values/tensor.js';
import type { InferenceContext } from '../../worker/api/types.js';
import { RunLoop, type RunLoopOptions } from '../../worker/run/run-loop.js';
import { Tap, nextTurn, type Received } from '../protocol/streams.js';
import { NO_METRICS, callWith } from './calls.js';

export const WINDOW_BYTES = 1000;
export const MAX_OUTPUT_BYTES = 2 * 1024 * 1024;

type Handle = (input: unknown, ctx: InferenceContext) => unknown;
type HandleBatch = (inputs: readonly unknown[], ctxs: readonly InferenceContext[]) => unknown;

/** The app's way with batches. */
export interface BatchWays {
  readonly handleBatch?: HandleBatch;
  readonly repeatable?: boolean;
  readonly signature?: Signature;
}

/** The loop of an app that runs several calls at the same time. */
export interface Several {
  readonly concurrency: number;
}

/** A run loop over a real channel; the front records what it writes. */
export class Bench {
  readonly tap = new Tap();
  readonly loop: RunLoop;
  /** Inputs the app has seen, in order. */
  readonly seen: unknown[] = [];
  readonly printsOf: string[] = [];
  readonly #notes: { id: number; afterWrites: number }[] = [];
  idleCalls = 0;
  /** Why the loop would rather have a new process. */
  readonly doubts: string[] = [];
  /** The calls of its activity listener. */
  readonly comings: string[] = [];

  constructor(
    handle: Handle,
    { handleBatch, repeatable = false, signature, concurrency = 1 }: BatchWays & Partial<Several> = {},
  ) {
    const refuse = (): never => assert.fail('the front did nothing');
    const channel = new Channel(new PassThrough(), this.tap, {
      onMessage: refuse,
      onEnd: refuse,
      onWriteError: refuse,
    });
    const options: Omit<RunLoopOptions, 'concurrency' | 'note' | 'activity'> = {
      channel,
      app: {
        description: {
          routes: [
            {
              path: '/',
              kind: 'handler',
              input: 'any',
              webhook: '',
              attempts: 1,
              maxBatch: handleBatch ? 0xffff : 1,
            },
          ],
          modelOptions: {},
          concurrency: 1,
          example: null,
          ...(signature && { signature }),
        },
        wishes: () => NO_WISHES,
        init: () => {},
        shutdown: () => {},
        handle: (_route, input, ctx) => {
          this.seen.push(input);
          return handle(input, ctx);
        },
        ...(handleBatch && { handleBatch: (_route, inputs, ctxs) => handleBatch(inputs, ctxs) }),
        repeatable,
      },
      worker: { index: 0, gpu: null, threads: 1 },
      metrics: NO_METRICS,
      prints: {
        run: (requestId, code) => {
          this.printsOf.push(requestId);
          return code();
        },
      },
      maxOutputBytes: MAX_OUTPUT_BYTES,
      streamWindowBytes: WINDOW_BYTES,
      onIdleAfterRetire: () => (this.idleCalls += 1),
      onDoubt: (why) => this.doubts.push(why.message),
    };
    const noteBegun = (id: number): void => {
      this.#notes.push({ id, afterWrites: this.tap.writes.length });
    };
    const activity = {
      onCall: () => this.comings.push('call'),
      onIdle: () => this.comings.push('idle'),
    };
    const note = { begin: noteBegun, end: () => {} };
    this.loop = new RunLoop({ ...options, concurrency, note, activity });
  }

  /** Hands in a call whose JSON body is `input`. */
  call(id: number, input: unknown = id, fields: Partial<Call> = {}): void {
    const body = Buffer.from(JSON.stringify(input));
    this.loop.accept([
      { call: callWith({ id, requestId: `r${id}`, bodyBytes: body.length, ...fields }), pieces: [body] },
    ]);
    this.loop.pump();
  }

  /** Adds calls that begin together, numbered from `firstId`; each text is a body, malformed if it is not JSON. */
  batch(firstId: number, bodies: readonly string[], fields: Partial<Call> = {}): void {
    const batch = bodies.map((text, i) => {
      const id = firstId + i;
      const body = Buffer.from(text);
      return {
        call: callWith({ id, requestId: `r${id}`, bodyBytes: body.length, ...fields }),
        pieces: [body],
      };
    });
    this.loop.accept(batch);
    this.loop.pump();
  }

  get messages(): Message[] {
    return this.tap.received.map(({ message }) => message);
  }

  /** Such as `begin 1`, `result 1`. */
  get story(): string[] {
    const begun = (writes: number): string[] =>
      this.#notes.filter(({ afterWrites }) => afterWrites === writes).map(({ id }) => `begin ${id}`);
    const told = this.tap.writes.flatMap((write, i) => [...begun(i), ...readStory(write)]);
    return [...told, ...begun(this.tap.writes.length)];
  }

  get begun(): number[] {
    return this.#notes.map(({ id }) => id);
  }

  of(type: Message['type'], id: number): Received | undefined {
    return this.tap.received.find(
      ({ message }) => message.type === type && (message as { id?: number }).id === id,
    );
  }

  text(id: number): string {
    const chunks = this.tap.received.filter(({ message }) => message.type === 'chunk' && message.id === id);
    return Buffer.concat(chunks.map(({ body }) => body)).toString();
  }

  /** Resolves once the call has its ending. */
  async ended(id: number): Promise<void> {
    // Not counted in turns: a format that is loaded on first use takes as many as the machine is slow.
    const limitMs = Date.now() + 60_000;
    while (Date.now() < limitMs) {
      if (this.endings(id) > 0) return;
      await nextTurn();
    }
    assert.fail(`call ${id} has no ending: ${this.story.join('; ')}`);
  }

  endings(id: number): number {
    const endings = ['result', 'end', 'error'];
    return this.messages.filter(
      (message) => endings.includes(message.type) && (message as { id: number }).id === id,
    ).length;
  }
}

function told(message: Message): string {
  if (message.type === 'error') return `error ${message.id} ${message.code}`;
  return 'id' in message ? `${message.type} ${message.id}` : message.type;
}

function readStory(bytes: Buffer): string[] {
  const tap = new Tap();
  tap.writes.push(bytes);
  return tap.received.map(({ message }) => told(message));
}

/** Time stands still unless the test moves it. */
export function frozenClock(t: TestContext): { advance(ms: number): void } {
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  return { advance: (ms) => (nowMs += ms) };
}
