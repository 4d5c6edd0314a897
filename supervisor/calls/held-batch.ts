/**
 * A batch of calls that were sent together and begin together; each has its own ending. One clock runs for all of them: it
 * stands still only while every one of them waits for its client, and no other call waits for the worker.
 */
import type { Call } from '../dispatch/call.js';
import { restart, resume, setHeldUp, type Clocked } from './run-clock.js';
import { ClientWait, type PausableClock } from './client-wait.js';

/** A call that a worker holds, running or sent ahead. `Call.checkBegun` looks up in the worker's note whether it has begun. */
export interface HeldCall {
  readonly id: number;
  readonly call: Call;
  /** The batch that it belongs to. */
  readonly batch: HeldBatch;
  /** Whether it is known to have begun: once true it stays true; if false, it may have begun since the last look. */
  knownBegun: boolean;
  /** Set for a streaming call or a WebSocket, until its client leaves. */
  clientWait: ClientWait | null;
}

export function clientWaitOf(held: HeldCall): ClientWait {
  return (held.clientWait ??= new ClientWait(held.batch));
}

export class HeldBatch implements Clocked, PausableClock {
  /** The calls without an ending yet, in the order sent. */
  readonly calls: HeldCall[] = [];
  beganAtMs = 0;
  graceMs: number;
  pausedMs = 0;
  pausedSinceMs: number | null = null;
  heldUpMs = 0;
  heldUpSinceMs: number | null = null;
  readonly #onHoldUp: (batch: HeldBatch) => void;
  #hasBegun = false;
  #othersWait = false;

  /** `graceMs`: time that it may take to begin, in addition to the limit. `onHoldUp`: its clients begin to hold up other calls. */
  constructor(graceMs: number, onHoldUp: (batch: HeldBatch) => void = () => {}) {
    this.graceMs = graceMs;
    this.#onHoldUp = onHoldUp;
  }

  /** Whether its clients hold up other calls, which wait for its worker. */
  get holdsUp(): boolean {
    return this.heldUpSinceMs !== null;
  }

  /** Whether other calls wait for its worker. */
  set othersWait(areWaiting: boolean) {
    if (areWaiting === this.#othersWait) return;
    this.#othersWait = areWaiting;
    this.setClock();
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** It should begin now: its time to do so starts. */
  awaitBegin(): void {
    if (!this.#hasBegun) this.beganAtMs = performance.now();
  }

  /** Marks its calls up to `last` as begun at `atMs` on the monotonic clock. */
  begin(last: HeldCall, atMs: number): void {
    const nowMs = performance.now();
    for (const held of this.calls) {
      if (!held.knownBegun) this.#beginCall(held, atMs, nowMs);
      if (held === last) return;
    }
  }

  /** Removes a call that has ended. */
  remove(held: HeldCall): void {
    if (this.calls.length === 1) {
      this.calls.pop(); // cheaper than a search, for nearly every call
      return;
    }
    this.calls.splice(this.calls.indexOf(held), 1);
    this.setClock();
  }

  setClock(): void {
    const waits = this.calls.every(({ clientWait }) => clientWait?.isOn === true);
    if (waits) this.pausedSinceMs ??= performance.now();
    else resume(this);
    if (setHeldUp(this, waits && this.#othersWait)) this.#onHoldUp(this);
  }

  restartClock(): void {
    restart(this);
  }

  #beginCall(held: HeldCall, atMs: number, nowMs: number): void {
    // A time out of range comes from another clock.
    const beganAtMs = atMs >= held.call.acceptedAtMs && atMs <= nowMs ? atMs : nowMs;
    held.knownBegun = true;
    held.call.begin(beganAtMs);
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.beganAtMs = beganAtMs;
    this.graceMs = 0;
  }
}
