/**
 * Ends a call that has used up its time, as `run-clock.ts` measures it.
 *
 * 1. A call that runs: its owner and its handler are told; if it has not ended after a grace, its process is killed.
 * 2. A call whose turn came and that never began: its process is killed.
 */
import type { Channel } from '../../protocol/channel.js';
import { ServeError } from '../../protocol/errors.js';
import type { Job } from '../dispatch/job.js';
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import type { HeldCall } from './held-call.js';
import { RunClock } from './run-clock.js';

/** A handler that was told to abort gets this long before its process is killed. */
export const ABORT_GRACE_MS = 1000;

/** However short the run timeout, a worker has this long to begin: a large body, a busy machine are no fault of it. */
export const MIN_BEGIN_MS = 5000;

/** Why the process of a call has to be killed. */
export type HopelessCause = 'run timeout' | 'it did not begin its call';

export interface RunTimeoutListener {
  /** The call failed for a reason that the log may want to know. */
  onCallError(job: Job, error: ServeError): void;
  /** The process must die: a handler did not obey, or a call never began. */
  onHopeless(cause: HopelessCause): void;
}

/** The calls of the worker. */
export interface TimedCalls {
  /** The running call, or the one that should begin now. Whether it has begun is looked up. */
  lookUpFirst(): HeldCall | null;
  holds(call: HeldCall): boolean;
}

export class RunTimeout {
  readonly #channel: Channel;
  readonly #calls: TimedCalls;
  readonly #listener: RunTimeoutListener;
  #limitMs: number;
  #clock: RunClock<HeldCall>;
  #graceTimer: LimitTimer | null = null;

  constructor(limitMs: number, channel: Channel, calls: TimedCalls, listener: RunTimeoutListener) {
    this.#channel = channel;
    this.#calls = calls;
    this.#listener = listener;
    this.#limitMs = limitMs;
    this.#clock = this.#newClock();
  }

  /** Applies to calls that begin from now on. */
  set limitMs(limitMs: number) {
    this.#limitMs = limitMs;
    this.#clock.stop();
    this.#clock = this.#newClock();
  }

  /** Time added to the limit of a call whose turn has come and that has not begun. */
  get beginGraceMs(): number {
    return Math.max(0, MIN_BEGIN_MS - this.#limitMs);
  }

  /** Call this when a call's turn comes. */
  start(): void {
    this.#clock.start();
  }

  close(): void {
    this.#clock.stop();
    this.#graceTimer?.stop();
  }

  #onTimeout(call: HeldCall): void {
    if (!call.knownBegun) {
      this.#listener.onHopeless('it did not begin its call');
      return;
    }
    const message = `The call ran longer than ${this.#limitMs} ms (--run-timeout).`;
    const error = new ServeError('SERVE_INFERENCE_TIMEOUT', message);
    if (!call.job.settled) this.#listener.onCallError(call.job, error);
    call.job.fail(error, this.#limitMs);
    this.#channel.send({ type: 'cancel', id: call.id, reason: 'the run timeout passed' });
    this.#channel.flush();
    this.#graceTimer = startLimit(ABORT_GRACE_MS, () => {
      if (this.#calls.holds(call)) this.#listener.onHopeless('run timeout');
    });
  }

  #newClock(): RunClock<HeldCall> {
    return new RunClock(
      this.#limitMs,
      () => this.#calls.lookUpFirst(),
      (call) => this.#onTimeout(call),
    );
  }
}
