/** A call that a worker holds, running or sent ahead. The worker's note tells whether it has begun; `Job.begun` reads it. */
import type { Job } from '../dispatch/job.js';
import type { HeldBatch } from './held-batch.js';
import { Turns } from './turns.js';

export interface HeldCall {
  readonly id: number;
  readonly job: Job;
  /** The calls that begin with it, itself included. */
  readonly batch: HeldBatch;
  /** Whether it was seen to have begun: once true it stays true; false says no more than that nobody has looked since. */
  knownBegun: boolean;
  /** Set for a call that streams or talks, as long as its client is there. */
  turns: Turns | null;
}

export function turnsOf(call: HeldCall): Turns {
  return (call.turns ??= new Turns(call.batch));
}
