/**
 * One call at a time, in order.
 *
 * 1. `accept` puts a call in the inbox; its body may still be arriving elsewhere.
 * 2. `pump` takes the next call, once the answer of the last one is in the kernel.
 * 3. `call-runner.ts` runs it to its end, and says so.
 *
 * Before: `main.ts` hands over messages. After: the channel sends.
 */
import type { Channel } from '../protocol/channel.js';
import { ServeError } from '../protocol/errors.js';
import type { Call, DataPart } from '../protocol/messages.js';
import { CallRunner } from './call-runner.js';
import { sendError } from './running-call.js';
import type { RunnerOptions, WaitingCall } from './runner.js';
import type { Idleness } from './stay-awake.js';

export interface RunLoopOptions extends RunnerOptions {
  /** Called when no call runs and none will be begun, after `retire`. */
  onIdleAfterRetire(): void;
  readonly idleness: Idleness;
}

/** A call that held the thread this long lets pending cancels in before the next begins. */
const YIELD_AFTER_MS = 1;

export class RunLoop {
  readonly #options: RunLoopOptions;
  readonly #channel: Channel;
  readonly #runner: CallRunner;
  #inbox: WaitingCall[] = [];
  #pumping = false;
  /** True while the loop waits for the kernel to take an answer, or for pending cancels to be read. */
  #resting = false;
  #retired = false;

  constructor(options: RunLoopOptions) {
    this.#options = options;
    this.#channel = options.channel;
    this.#runner = new CallRunner(options, (runMs) => this.#onEnded(runMs));
  }

  /** Request id of the running call; empty between calls. */
  get runningRequestId(): string {
    return this.#runner.requestId;
  }

  /** Takes a call whose body is whole; `pump` begins it. */
  accept(call: Call, pieces: Buffer[]): void {
    this.#inbox.push({ call, pieces });
    this.#options.idleness.onCall();
  }

  /** Cancels a call that nobody waits for: drops it if it has not begun, else tells the app. */
  cancel(id: number, reason: string): void {
    if (this.#runner.runs(id)) {
      this.#runner.cancel(id, reason);
      return;
    }
    const index = this.#inbox.findIndex(({ call }) => call.id === id);
    if (index < 0) return; // answered while the cancel was on its way
    this.#inbox.splice(index, 1);
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
    this.#runner.begin(this.#inbox.shift() as WaitingCall);
  }

  #restUntilFlushed(): void {
    this.#resting = true;
    this.#channel.onceFlushed(() => {
      this.#resting = false;
      this.pump();
    });
  }

  #onEnded(runMs: number): void {
    if (this.#retired) {
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
