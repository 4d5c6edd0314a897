/**
 * The number of due jobs that wait in each queue, as far as this server knows: from its own steps, from the events of others, and from a
 * look each second. May be wrong for a moment; only a fetch finds out.
 */
import type { WaitingPlace } from '../job-record.js';
import { WaitingQueues } from '../waiting-jobs.js';
import { nameOf, placeIn } from './queue-name.js';

interface CountedQueue {
  readonly place: WaitingPlace;
  readonly name: string;
  length: number;
}

export class WaitingCounts extends WaitingQueues<CountedQueue> {
  constructor() {
    super((place) => ({ place, name: nameOf(place), length: 0 }));
  }

  /** Takes the counts of a script. Called in the order of the answers, in which own jobs are counted too. */
  note(counts: readonly (readonly [name: string, due: number, ...more: unknown[]])[]): void {
    for (const [name, due] of counts) this.change(placeIn(name), (queue) => (queue.length = due));
  }

  /** This server has let a due job wait, or has taken one. */
  add(name: string, by: 1 | -1): void {
    this.change(placeIn(name), (queue) => (queue.length = Math.max(0, queue.length + by)));
  }

  /** A job waits, by an event. */
  hear(name: string): void {
    this.change(placeIn(name), (queue) => (queue.length = Math.max(1, queue.length)));
  }
}
