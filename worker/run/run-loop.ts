/**
 * Runs one call, or one batch, at a time, in order.
 *
 * 1. `accept` puts calls into the inbox once their bodies are complete.
 * 2. `pump` takes the next ones once the previous answers are in the kernel.
 * 3. `call-runner.ts` or `batch-runner.ts` runs them and calls back at their end.
 *
 * `main.ts` delivers the messages; the channel sends the answers. Beside: `concurrent-loop.ts` runs several calls at the
 * same time.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Channel } from '../../protocol/wire/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import type { DataPart } from '../../protocol/wire/messages.js';
import { BatchRunner } from './batch-runner.js';
import type { CallLoop, CallLoopOptions } from './call-loop.js';
import { CallRunner } from './call-runner.js';
import { Retirement } from '../failures/retirement.js';
import { sendError } from './running-call.js';
import type { OnEnded, Runner, RunnerOptions, WaitingCall } from './runner.js';
import type { ActivityListener } from '../process/stay-awake.js';

export interface RunLoopOptions extends CallLoopOptions, RunnerOptions {
  readonly activity: ActivityListener;
}

/** Calls that begin together. */
interface Waiting {
  readonly calls: readonly WaitingCall[];
  /**
   * The async context they run in, so that no later call sees what their app enters with `AsyncLocalStorage.enterWith`.
   */
  readonly asyncContext: AsyncResource;
}

/** After a call that blocked the thread this long, pending cancels are read before the next call begins. */
const YIELD_AFTER_MS = 1;

export class RunLoop implements CallLoop {
  readonly #options: RunLoopOptions;
  readonly #channel: Channel;
  readonly #single: CallRunner;
  readonly #batches: BatchRunner;
  readonly #retirement = new Retirement();
  /** The runner of the current call, or of the last one. */
  #runner: Runner;
  #inbox: Waiting[] = [];
  #pumping = false;
  /** True while the loop waits for the kernel to take an answer, or for pending cancels to be read. */
  #resting = false;
  #retired = false;

  constructor(options: RunLoopOptions) {
    this.#options = options;
    this.#channel = options.channel;
    const onEnded: OnEnded = (runMs, thrown) => this.#onEnded(runMs, thrown);
    this.#single = new CallRunner(options, onEnded);
    this.#batches = new BatchRunner(options, onEnded);
    this.#runner = this.#single;
  }

  get runningRequestId(): string {
    return this.#runner.requestId;
  }

  accept(calls: readonly WaitingCall[]): void {
    if (calls.length > 1) this.#assertBatch(calls);
    this.#inbox.push({ calls, asyncContext: new AsyncResource('banana-serve call') });
    this.#options.activity.onCall();
  }

  cancel(id: number, reason: string): void {
    if (this.#runner.runs(id)) {
      this.#runner.cancel(id, reason);
      return;
    }
    const index = this.#inbox.findIndex(({ calls }) => calls.some(({ call }) => call.id === id));
    if (index < 0) return; // it was answered while the cancel was on its way
    const { calls, asyncContext } = this.#inbox[index] as Waiting;
    const others = calls.filter(({ call }) => call.id !== id);
    this.#inbox.splice(index, 1, ...(others.length === 0 ? [] : [{ calls: others, asyncContext }]));
    this.sendCancelled(id);
  }

  sendCancelled(id: number): void {
    sendError(this.#channel, id, new ServeError('SERVE_CANCELLED'), 0);
    this.#channel.flush();
  }

  grantCredit(id: number, bytes: number): void {
    this.#runner.grantCredit(id, bytes);
  }

  takeData(part: DataPart, pieces: readonly Buffer[]): void {
    this.#runner.takeData(part, pieces);
  }

  retire(abortReason: string | null): void {
    this.#retired = true;
    this.#inbox = [];
    if (abortReason !== null) this.#runner.abort(abortReason);
    if (!this.#runner.isRunning) this.#options.onIdleAfterRetire();
  }

  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    while (!this.#runner.isRunning && !this.#resting && !this.#retired && this.#inbox.length > 0) {
      this.#channel.flush();
      // An answer that is not in the kernel would die with the process, so its call does not count as ended yet.
      if (this.#channel.flushed) this.#beginNext();
      else this.#restUntilFlushed();
    }
    this.#pumping = false;
    this.#channel.flush();
    if (!this.#runner.isRunning && this.#inbox.length === 0) this.#options.activity.onIdle();
  }

  #beginNext(): void {
    const { calls, asyncContext } = this.#inbox.shift() as Waiting;
    const [first] = calls as [WaitingCall];
    if (calls.length === 1) {
      this.#runner = this.#single;
      asyncContext.runInAsyncScope(() => this.#single.begin(first));
    } else {
      this.#runner = this.#batches;
      asyncContext.runInAsyncScope(() => this.#batches.begin(calls));
    }
  }

  #assertBatch(batch: readonly WaitingCall[]): void {
    const { route } = (batch[0] as WaitingCall).call;
    const isOneRoute = batch.every(({ call }) => call.route === route);
    const { maxBatch = 1 } = this.#options.app.description.routes.find(({ path }) => path === route) ?? {};
    if (isOneRoute && batch.length <= maxBatch) return;
    throw protocolError(`a batch of ${batch.length} calls; the route ${route} takes at most ${maxBatch}`);
  }

  #restUntilFlushed(): void {
    this.#resting = true;
    this.#channel.onceFlushed(() => {
      this.#resting = false;
      this.pump();
    });
  }

  #onEnded(runMs: number, thrown: unknown): void {
    const doubt = this.#retirement.afterCall(thrown);
    if (doubt !== null && !this.#retired) {
      this.#channel.flush();
      this.#options.onDoubt(doubt);
    } else if (this.#retired) {
      this.#channel.flush();
      this.#options.onIdleAfterRetire();
    } else if (runMs > YIELD_AFTER_MS && this.#inbox.length > 0) {
      this.#resting = true;
      this.#channel.flush();
      setImmediate(() => {
        this.#resting = false;
        this.pump();
      });
    } else {
      this.pump();
    }
  }
}
