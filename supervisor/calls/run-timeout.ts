/**
 * Ends the batches of one worker that exceed the run timeout; most batches are one call. A batch's time starts when it should
 * begin, again when it begins, and stands still while all its calls wait for their clients (`held-batch.ts`). Whether it has
 * begun is looked up when the time seems to be over. One timer serves all batches, and is set again only when it fires.
 *
 * 1. A batch that runs: its clients get an error and its handlers an abort signal. If one has not ended after a grace, the
 *    process is killed: at once if no other call runs in it, or if its event loop answers no ping; else the worker gets no more
 *    calls, and is killed when the others have ended, or exceed their own limits.
 * 2. A batch whose clients keep it waiting while other calls wait for the worker: it ends as if its clients had left.
 * 3. A batch whose turn it is and that never began: the process is killed.
 */
import { ServeError } from '../../protocol/errors.js';
import type { Call } from '../dispatch/call.js';
import { Alarm, startLimit, type LimitTimer, type NamedLimit } from '../machine/limit-timer.js';
import { HeldBatch, type CallHolder, type HeldCall } from './held-batch.js';

/** Time between the abort signal of a handler and the kill of its process. */
export const ABORT_GRACE_MS = 1000;

/** Least time that a worker has to begin, for large bodies and busy machines, even if the run timeout is shorter. */
export const MIN_BEGIN_MS = 5000;

/** Time in which an event loop that turns answers a ping. */
export const PONG_MS = 500;

export class RunTimeout {
  readonly #worker: CallHolder;
  #limit: NamedLimit;
  readonly #alarm = new Alarm(() => this.#check(), startLimit);
  /** Batches whose time is over, with the timers of their grace. */
  readonly #late = new Map<HeldBatch, LimitTimer>();
  /** Batches whose grace is over, too. */
  readonly #stuck = new Set<HeldBatch>();
  #pingTimer: LimitTimer | null = null;
  #pings = 0;

  constructor(limit: NamedLimit, worker: CallHolder) {
    this.#limit = limit;
    this.#worker = worker;
  }

  /** Applies to batches that begin from now on. */
  set limit(limit: NamedLimit) {
    this.#limit = limit;
    this.#alarm.stop();
  }

  /** Makes a batch; while it has not begun, its limit is longer. */
  newBatch(): HeldBatch {
    return new HeldBatch(Math.max(0, MIN_BEGIN_MS - this.#limit.ms), this.#hasten);
  }

  /** A batch is active now: it must begin in time, or its worker hangs. Also for one that has begun: the clock may have run out on the one before. */
  start(batch: HeldBatch): void {
    const nowMs = performance.now();
    if (!batch.hasBegun) batch.beganAtMs = nowMs;
    this.#alarm.set(nowMs + this.#limit.ms);
  }

  /** More time counts than before, since the clients of a batch hold up other calls: its limit may be over earlier. */
  readonly #hasten = (batch: HeldBatch): void => {
    const nowMs = performance.now();
    this.#alarm.set(nowMs + this.#limit.ms - batch.usedMs(nowMs));
  };

  /** A batch has ended. */
  onEnded(): void {
    if (this.#stuck.size > 0 && this.#areAllStuck()) this.#killStuck();
  }

  /** The worker's event loop turns. */
  onPong(ref: number): void {
    if (ref === this.#pings) this.#stopPing();
  }

  /** Stops all timers. */
  close(): void {
    this.#alarm.stop();
    this.#stopPing();
    for (const grace of this.#late.values()) grace.stop();
  }

  #check(): void {
    const nowMs = performance.now();
    const over: HeldBatch[] = [];
    for (const batch of this.#worker.lookUpActive()) {
      if (this.#late.has(batch)) continue;
      const leftMs = this.#limit.ms - batch.usedMs(nowMs);
      if (leftMs > 0) this.#alarm.set(nowMs + leftMs);
      else over.push(batch);
    }
    for (const batch of over) this.#onTimeout(batch);
  }

  #onTimeout(batch: HeldBatch): void {
    if (!batch.hasBegun) {
      this.#worker.kill('it did not begin its call');
      return;
    }
    if (batch.holdsUp) {
      this.#endAsLeft(batch);
      return;
    }
    for (const held of batch.calls) this.#timeOut(held);
    this.#worker.channel.flush();
    const grace = startLimit(ABORT_GRACE_MS, () => this.#onGraceOver(batch));
    this.#late.set(batch, grace);
  }

  #timeOut({ id, call }: HeldCall): void {
    const { ms, name } = this.#limit;
    const message = `The call ran longer than ${ms} ms (${name}).`;
    const error = new ServeError('SERVE_INFERENCE_TIMEOUT', message);
    if (!call.settled) this.#worker.onCallError(call, error);
    call.fail(error, ms);
    this.#worker.channel.send({ type: 'cancel', id, reason: 'the run timeout passed' });
  }

  /** The handlers are not to blame: as for clients that have left, their own run time counts from here. */
  #endAsLeft({ calls: held }: HeldBatch): void {
    const { ms, name } = this.#limit;
    for (const { call } of [...held]) {
      call.fail(holdUpError(call, `${ms} ms (${name})`));
      this.#worker.abandon(call, 'other calls waited for the worker, and the client kept it waiting');
    }
    this.#alarm.set(performance.now() + ms);
  }

  #onGraceOver(batch: HeldBatch): void {
    if (batch.calls.length === 0) {
      this.#late.delete(batch);
      return;
    }
    this.#stuck.add(batch);
    if (this.#areAllStuck()) this.#killStuck();
    else {
      this.#worker.leave('a call goes on after its time');
      this.#ping();
    }
  }

  /** Whether stuck calls are all that is left. */
  #areAllStuck(): boolean {
    const { active } = this.#worker;
    return active.length > 0 && active.every((batch) => this.#stuck.has(batch));
  }

  #ping(): void {
    if (this.#pingTimer !== null) return; // one is on its way
    this.#pings += 1;
    this.#worker.channel.send({ type: 'ping', ref: this.#pings });
    this.#worker.channel.flush();
    this.#pingTimer = startLimit(PONG_MS, () => this.#killStuck());
  }

  #stopPing(): void {
    this.#pingTimer?.stop();
    this.#pingTimer = null;
  }

  /** Others whose own time is over by now get the error of that, not of the kill. */
  #killStuck(): void {
    this.#alarm.stop();
    this.#check();
    this.#worker.kill('run timeout');
  }
}

function holdUpError({ isConversation }: Call, limit: string): ServeError {
  const why = `while other calls waited for its worker, for longer than ${limit} in all.`;
  return isConversation
    ? new ServeError('SERVE_REQUEST_TIMEOUT', `The client kept its worker waiting ${why}`)
    : new ServeError('SERVE_SLOW_READER', `The client read its answer too slowly ${why}`);
}
