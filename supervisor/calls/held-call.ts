/** A call that a worker holds, running or sent ahead. The worker's note tells whether it has begun; `Job.begun` reads it. */
import type { Job } from '../dispatch/job.js';
import type { ClockedCall } from './run-clock.js';
import { Turns } from './turns.js';

export interface HeldCall extends ClockedCall {
  readonly id: number;
  readonly job: Job;
  /** Whether it was seen to have begun: once true it stays true; false says no more than that nobody has looked since. */
  knownBegun: boolean;
  /** Set for a call that streams or talks. */
  turns: Turns | null;
}

/** Marks a call as begun at `atMs` on the monotonic clock, as its worker says. */
export function begin(call: HeldCall, atMs: number): void {
  const nowMs = performance.now();
  // A time that cannot be is another clock's.
  const beganAtMs = atMs >= call.job.acceptedAtMs && atMs <= nowMs ? atMs : nowMs;
  call.knownBegun = true;
  call.beganAtMs = beganAtMs;
  call.graceMs = 0;
  call.job.begin(beganAtMs);
}

export function turnsOf(call: HeldCall): Turns {
  return (call.turns ??= new Turns(call));
}
