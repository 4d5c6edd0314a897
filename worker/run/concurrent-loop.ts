/**
 * Runs several calls at the same time. The functions of the app wait for something else meanwhile, each in an async
 * context of its own, by which everything that it prints and reports belongs to its call.
 *
 * 1. `accept` puts calls into the inbox once their bodies are complete.
 * 2. `pump` begins all of them, in the order in which they came. It does not wait until earlier answers are in the kernel,
 * as they may never all be while other calls stream: they die with the worker, as the calls that run do.
 * 3. `running-call.ts` answers each of them, and calls back at its end.
 *
 * Beside: `run-loop.ts` runs one call, or one batch, at a time.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { totalBytes } from '../../protocol/wire/body-assembler.js';
import type { Channel } from '../../protocol/wire/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import type { DataPart } from '../../protocol/wire/messages.js';
import { Retirement } from '../failures/retirement.js';
import { BegunTimes } from '../process/begun-note.js';
import type { CallLoop, CallLoopOptions } from './call-loop.js';
import { RunningCall, sendError, type CallHost } from './running-call.js';
import { runCall } from './run-call.js';
import type { WaitingCall } from './runner.js';

interface Waiting {
  readonly waiting: WaitingCall;
  readonly asyncContext: AsyncResource;
}

export class ConcurrentLoop implements CallLoop {
  readonly #options: CallLoopOptions;
  readonly #channel: Channel;
  readonly #concurrency: number;
  readonly #host: CallHost;
  readonly #note: Pick<BegunTimes, 'begin' | 'end'>;
  readonly #retirement = new Retirement();
  /** The request id of the call whose code runs. */
  readonly #current = new AsyncLocalStorage<string>();
  readonly #running = new Map<number, RunningCall>();
  #inbox: Waiting[] = [];
  #pumping = false;
  #retired = false;

  /** `concurrency`: the most calls that run at the same time; the front sends no more. */
  constructor(
    options: CallLoopOptions,
    concurrency: number,
    note: Pick<BegunTimes, 'begin' | 'end'> = new BegunTimes(concurrency),
  ) {
    this.#options = options;
    this.#channel = options.channel;
    this.#concurrency = concurrency;
    this.#note = note;
    this.#host = { ...options, answersTogether: true, onEnded: (running) => this.#onEnded(running) };
  }

  get runningRequestId(): string {
    return this.#current.getStore() ?? '';
  }

  /** @throws SERVE_PROTOCOL for a batch, or for more calls than may run */
  accept(calls: readonly WaitingCall[]): void {
    const held = this.#running.size + this.#inbox.length + calls.length;
    if (calls.length > 1 || held > this.#concurrency)
      throw protocolError(`${held} calls, ${calls.length} of them at once; ${this.#concurrency} may run`);
    if (this.#retired) return; // the front has sent it before it knew
    const [waiting] = calls as [WaitingCall];
    this.#inbox.push({ waiting, asyncContext: new AsyncResource('banana-serve call') });
  }

  cancel(id: number, reason: string): void {
    const running = this.#running.get(id);
    if (running !== undefined) {
      running.cancel(reason);
      return;
    }
    const index = this.#inbox.findIndex(({ waiting }) => waiting.call.id === id);
    if (index < 0) return; // it was answered while the cancel was on its way
    this.#inbox.splice(index, 1);
    this.sendCancelled(id);
  }

  sendCancelled(id: number): void {
    if (this.#retired) return; // the front has taken it back, and knows its id no more
    sendError(this.#channel, id, new ServeError('SERVE_CANCELLED'), 0);
    this.#channel.flush();
  }

  grantCredit(id: number, bytes: number): void {
    this.#running.get(id)?.grantCredit(bytes);
  }

  takeData({ id, text, last }: DataPart, pieces: readonly Buffer[]): void {
    this.#running.get(id)?.socket?.onData(pieces, totalBytes(pieces), text, last);
  }

  retire(abortReason: string | null, doubt: string | null): void {
    this.#retired = true;
    this.#inbox = [];
    if (abortReason !== null) for (const { ctx } of this.#running.values()) ctx.abort(abortReason);
    if (this.#running.size === 0) {
      this.#options.onIdleAfterRetire();
      return;
    }
    // The front must know that what it has sent meanwhile does not begin here: the running calls may take long.
    if (doubt !== null) this.#channel.send({ type: 'retiring', reason: doubt });
    this.#channel.flush();
  }

  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    while (!this.#retired && this.#inbox.length > 0) {
      this.#channel.flush();
      this.#beginNext();
    }
    this.#pumping = false;
    this.#channel.flush();
  }

  #beginNext(): void {
    const { waiting, asyncContext } = this.#inbox.shift() as Waiting;
    const { id, requestId } = waiting.call;
    const beganAtMs = performance.now();
    this.#note.begin(id);
    const running = new RunningCall(this.#host, waiting, beganAtMs);
    this.#running.set(id, running);
    asyncContext.runInAsyncScope(() => this.#current.run(requestId, () => runCall(running, this.#options)));
  }

  #onEnded(running: RunningCall): void {
    const { id } = running.call;
    running.socket?.end();
    this.#running.delete(id);
    this.#note.end(id);
    this.#channel.flush();
    const doubt = this.#retirement.afterCall(running.thrown);
    if (doubt !== null && !this.#retired) this.#options.onDoubt(doubt);
    else if (this.#retired && this.#running.size === 0) this.#options.onIdleAfterRetire();
  }
}
