/**
 * Ends a batch that exceeds the run timeout, as `run-clock.ts` measures it; most batches are one call.
 *
 * 1. A batch that runs: its clients get an error and its handlers an abort signal; if one has not ended after a grace, the
 *    process is killed, as soon as no other call runs in it (`stuck-calls.ts`).
 * 2. A batch whose clients keep it waiting while other calls wait for the worker: it ends as if its clients had left.
 * 3. A batch whose turn it is and that never began: the process is killed.
 */
import type { Channel } from '../../protocol/wire/channel.js';
import { ServeError } from '../../protocol/errors.js';
import type { Call } from '../dispatch/call.js';
import { startLimit, type LimitTimer, type NamedLimit } from '../machine/limit-timer.js';
import type { HeldBatch, HeldCall } from './held-batch.js';
import { RunClock } from './run-clock.js';
import { StuckCalls } from './stuck-calls.js';

/** Time between the abort signal of a handler and the kill of its process. */
export const ABORT_GRACE_MS = 1000;

/** Least time that a worker has to begin, for large bodies and busy machines, even if the run timeout is shorter. */
export const MIN_BEGIN_MS = 5000;

/** The reason why the process of a call has to be killed. */
export type StuckCause = 'run timeout' | 'it did not begin its call';

export interface RunTimeoutListener {
  /** The call failed; the log may need the error. */
  onCallError(call: Call, error: ServeError): void;
  /** The process must be killed: a handler did not end, or a call never began. */
  onStuck(cause: StuckCause): void;
  /** A handler did not end, and others run in the same process: it must get no more calls. Its kill follows. */
  onOutlasted(): void;
}

/** The batches of the worker. */
export interface TimedBatches {
  /** The batches that run or should begin now. */
  readonly active: readonly HeldBatch[];
  /** The same; looks up which of them have begun. */
  lookUpActive(): readonly HeldBatch[];
  holds(batch: HeldBatch): boolean;
  /** The call's client has its error; cancels the call in the worker. */
  abandon(call: Call, reason: string): void;
}

export class RunTimeout {
  readonly #channel: Channel;
  readonly #batches: TimedBatches;
  readonly #listener: RunTimeoutListener;
  #limit: NamedLimit;
  #clock: RunClock<HeldBatch>;
  /** Batches whose time is over, with the timers of their grace. */
  readonly #late = new Map<HeldBatch, LimitTimer>();
  readonly #stuck: StuckCalls;

  constructor(limit: NamedLimit, channel: Channel, batches: TimedBatches, listener: RunTimeoutListener) {
    this.#channel = channel;
    this.#batches = batches;
    this.#listener = listener;
    this.#limit = limit;
    this.#clock = this.#newClock();
    this.#stuck = new StuckCalls(channel, () => batches.active, {
      onOutlasted: () => listener.onOutlasted(),
      onHopeless: () => this.#onHopeless(),
    });
  }

  /** Applies to batches that begin from now on. */
  set limit(limit: NamedLimit) {
    this.#limit = limit;
    this.#clock.stop();
    this.#clock = this.#newClock();
  }

  /** Time added to the limit of a batch while it has not begun. */
  get beginGraceMs(): number {
    return Math.max(0, MIN_BEGIN_MS - this.#limit.ms);
  }

  /** Called when a batch should begin. */
  start(): void {
    this.#clock.start();
  }

  /** Called when the clients of a batch begin to hold up other calls. */
  hasten(batch: HeldBatch): void {
    this.#clock.hasten(batch);
  }

  /** A batch has ended. */
  onEnded(): void {
    this.#stuck.onEnded();
  }

  onPong(ref: number): void {
    this.#stuck.onPong(ref);
  }

  close(): void {
    this.#clock.stop();
    this.#stuck.close();
    for (const grace of this.#late.values()) grace.stop();
  }

  #onTimeout(batch: HeldBatch): void {
    if (!batch.hasBegun) {
      this.#listener.onStuck('it did not begin its call');
      return;
    }
    if (batch.holdsUp) {
      this.#endAsLeft(batch);
      return;
    }
    for (const held of batch.calls) this.#timeOut(held);
    this.#channel.flush();
    const grace = startLimit(ABORT_GRACE_MS, () => this.#onGraceOver(batch));
    this.#late.set(batch, grace);
  }

  #onGraceOver(batch: HeldBatch): void {
    if (this.#batches.holds(batch)) this.#stuck.add(batch);
    else this.#late.delete(batch);
  }

  /** Others whose own time is over by now get the error of that, not of the kill. */
  #onHopeless(): void {
    this.#clock.checkNow();
    this.#listener.onStuck('run timeout');
  }

  #timeOut({ id, call }: HeldCall): void {
    const { ms, name } = this.#limit;
    const message = `The call ran longer than ${ms} ms (${name}).`;
    const error = new ServeError('SERVE_INFERENCE_TIMEOUT', message);
    if (!call.settled) this.#listener.onCallError(call, error);
    call.fail(error, ms);
    this.#channel.send({ type: 'cancel', id, reason: 'the run timeout passed' });
  }

  /** The handlers are not to blame: as for clients that have left, their own run time counts from here. */
  #endAsLeft({ calls: held }: HeldBatch): void {
    const { ms, name } = this.#limit;
    for (const { call } of [...held]) {
      call.fail(holdUpError(call, `${ms} ms (${name})`));
      this.#batches.abandon(call, 'other calls waited for the worker, and the client kept it waiting');
    }
    this.#clock.start();
  }

  #newClock(): RunClock<HeldBatch> {
    return new RunClock(
      this.#limit.ms,
      () => this.#batches.lookUpActive().filter((batch) => !this.#late.has(batch)),
      (batch) => this.#onTimeout(batch),
    );
  }
}

function holdUpError({ isConversation }: Call, limit: string): ServeError {
  const why = `while other calls waited for its worker, for longer than ${limit} in all.`;
  return isConversation
    ? new ServeError('SERVE_REQUEST_TIMEOUT', `The client kept its worker waiting ${why}`)
    : new ServeError('SERVE_SLOW_READER', `The client read its answer too slowly ${why}`);
}
