/**
 * One call at a time, or one batch, in order.
 *
 * 1. `accept` puts calls in the inbox, once their bodies are whole.
 * 2. `pump` takes the next ones, once the answers of the last are in the kernel.
 * 3. `call-runner.ts` or `batch-runner.ts` runs them to their end, and says so.
 *
 * Before: `main.ts` hands over messages. After: the channel sends.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Channel } from '../../protocol/wire/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import type { DataPart } from '../../protocol/wire/messages.js';
import { BatchRunner } from './batch-runner.js';
import { CallRunner } from './call-runner.js';
import { Retirement } from '../failures/retirement.js';
import { sendError } from './running-call.js';
import type { OnEnded, Runner, RunnerOptions, WaitingCall } from './runner.js';
import type { Idleness } from '../process/stay-awake.js';

export interface RunLoopOptions extends RunnerOptions {
  /** Called when no call runs and none will be begun, after `retire`. */
  onIdleAfterRetire(): void;
  /** Called when what a call threw says that a new process would do better. No call runs then. */
  onDoubt(why: ServeError): void;
  readonly idleness: Idleness;
}

/** Calls that begin together. */
interface Waiting {
  readonly calls: readonly WaitingCall[];
  /** Where they run: what their app enters with `AsyncLocalStorage.enterWith` is seen by no call after them. */
  readonly asyncContext: AsyncResource;
}

/** A call that held the thread this long lets pending cancels in before the next begins. */
const YIELD_AFTER_MS = 1;

export class RunLoop {
  readonly #options: RunLoopOptions;
  readonly #channel: Channel;
  readonly #single: CallRunner;
  readonly #batches: BatchRunner;
  readonly #retirement = new Retirement();
  /** The one that runs, or ran last. */
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

  /** Request id of the running call; empty between calls. */
  get runningRequestId(): string {
    return this.#runner.requestId;
  }

  /**
   * Takes calls whose bodies are whole: one, or a batch; `pump` begins them together.
   * @throws SERVE_PROTOCOL if their route does not take so many
   */
  accept(calls: readonly WaitingCall[]): void {
    if (calls.length > 1) this.#assertBatch(calls);
    this.#inbox.push({ calls, asyncContext: new AsyncResource('banana-serve call') });
    this.#options.idleness.onCall();
  }

  /** Cancels a call that nobody waits for: drops it if it has not begun, else tells the app. */
  cancel(id: number, reason: string): void {
    if (this.#runner.runs(id)) {
      this.#runner.cancel(id, reason);
      return;
    }
    const index = this.#inbox.findIndex(({ calls }) => calls.some(({ call }) => call.id === id));
    if (index < 0) return; // answered while the cancel was on its way
    const { calls, asyncContext } = this.#inbox[index] as Waiting;
    const others = calls.filter(({ call }) => call.id !== id);
    this.#inbox.splice(index, 1, ...(others.length === 0 ? [] : [{ calls: others, asyncContext }]));
    this.sendCancelled(id);
  }

  /** Sends the ending of a call that never began. */
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

  /** Begins no further call; tells the running one that it should end. */
  retire(abortReason: string | null): void {
    this.#retired = true;
    this.#inbox = [];
    if (abortReason !== null) this.#runner.abort(abortReason);
    if (!this.#runner.isRunning) this.#options.onIdleAfterRetire();
  }

  /** Begins the next call, if none runs. Once per read: a cancel behind a call is seen before the call begins. */
  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    while (!this.#runner.isRunning && !this.#resting && !this.#retired && this.#inbox.length > 0) {
      this.#channel.flush();
      // An answer that is not in the kernel dies with the process, and its call may not be taken for ended.
      if (this.#channel.flushed) this.#beginNext();
      else this.#restUntilFlushed();
    }
    this.#pumping = false;
    this.#channel.flush();
    if (!this.#runner.isRunning && this.#inbox.length === 0) this.#options.idleness.onIdle();
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
    const { maxBatch = 1 } = this.#options.app.routes.find(({ path }) => path === route) ?? {};
    if (isOneRoute && batch.length <= maxBatch) return;
    throw protocolError(`a batch of ${batch.length} calls; the route ${route} takes ${maxBatch}`);
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
