/**
 * Calls that were sent together and begin together; each has an ending of its own. One clock runs for all of them: it
 * stands still only while every one of them waits for its client.
 */
import type { Job } from '../dispatch/job.js';
import { restart, resume, type Clocked } from './run-clock.js';
import { ClientWait, type PausableClock } from './client-wait.js';

/** A call that a worker holds, running or sent ahead. The worker's note tells whether it has begun; `Job.begun` reads it. */
export interface HeldCall {
  readonly id: number;
  readonly job: Job;
  /** The calls that begin with it, itself included. */
  readonly batch: HeldBatch;
  /** Whether it was seen to have begun: once true it stays true; false says no more than that nobody has looked since. */
  knownBegun: boolean;
  /** Set for a call that streams or talks, as long as its client is there. */
  clientWait: ClientWait | null;
}

export function clientWaitOf(call: HeldCall): ClientWait {
  return (call.clientWait ??= new ClientWait(call.batch));
}

export class HeldBatch implements Clocked, PausableClock {
  /** Those that have no ending yet, in the order sent. */
  readonly calls: HeldCall[] = [];
  beganAtMs = 0;
  graceMs: number;
  pausedMs = 0;
  pausedSinceMs: number | null = null;
  #hasBegun = false;

  /** `graceMs`: the time that it may take to begin, besides the limit. */
  constructor(graceMs: number) {
    this.graceMs = graceMs;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Its turn has come: it has to begin from now on. */
  awaitBegin(): void {
    if (!this.#hasBegun) this.beganAtMs = performance.now();
  }

  /** Marks its calls up to `last` as begun at `atMs` on the monotonic clock, as its worker says. */
  begin(last: HeldCall, atMs: number): void {
    const nowMs = performance.now();
    for (const call of this.calls) {
      if (!call.knownBegun) this.#beginCall(call, atMs, nowMs);
      if (call === last) return;
    }
  }

  /** The call has its ending. */
  remove(call: HeldCall): void {
    if (this.calls.length === 1) {
      this.calls.pop(); // cheaper than a search, for nearly every call
      return;
    }
    this.calls.splice(this.calls.indexOf(call), 1);
    this.setClock();
  }

  setClock(): void {
    const waits = this.calls.every(({ clientWait: turns }) => turns?.isOn === true);
    if (waits) this.pausedSinceMs ??= performance.now();
    else resume(this);
  }

  restartClock(): void {
    restart(this);
  }

  #beginCall(call: HeldCall, atMs: number, nowMs: number): void {
    // A time that cannot be is another clock's.
    const beganAtMs = atMs >= call.job.acceptedAtMs && atMs <= nowMs ? atMs : nowMs;
    call.knownBegun = true;
    call.job.begin(beganAtMs);
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.beganAtMs = beganAtMs;
    this.graceMs = 0;
  }
}
