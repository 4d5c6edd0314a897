/**
 * The number of due jobs that wait in each queue, as far as this server knows: from its own steps, from the events of others, and from a
 * look each second. May be wrong for a moment; only a fetch finds out.
 */
import type { JobTarget, WaitingPlace } from '../job-record.js';
import { placeIn, takes, type QueuePlace } from './queue-name.js';

interface Count {
  readonly place: QueuePlace;
  due: number;
}

/** A queue has jobs of all priorities: which of them wait first is not known here. */
const PRIORITY = 0;

const EVENT_LIMIT_MS = 10_000;

export class WaitingCounts {
  readonly #byQueue = new Map<string, Count>();
  /** Own steps whose events have still to come, by queue and job, and when the last was. */
  readonly #expected = new Map<string, { times: number; readonly atMs: number }>();

  queues(): IterableIterator<string> {
    return this.#byQueue.keys();
  }

  /** The queues with due jobs for this target, and their routes. */
  queuesFor(target: JobTarget): { readonly queue: string; readonly route: string }[] {
    const found: { queue: string; route: string }[] = [];
    for (const [queue, { place, due }] of this.#byQueue)
      if (due > 0 && takes(target, place)) found.push({ queue, route: place.route });
    return found;
  }

  places(): WaitingPlace[] {
    const waiting = [...this.#byQueue.values()].filter(({ due }) => due > 0);
    return waiting.map(({ place }) => ({ ...place, priority: PRIORITY }));
  }

  hasDue(model: string): boolean {
    for (const { place, due } of this.#byQueue.values()) if (due > 0 && place.model === model) return true;
    return false;
  }

  waiting(target: JobTarget): number {
    let sum = 0;
    for (const { place, due } of this.#byQueue.values()) if (takes(target, place)) sum += due;
    return sum;
  }

  /** Takes the counts of a script. Called in the order of the answers, in which own jobs are counted too. */
  note(counts: readonly (readonly [queue: string, due: number])[]): void {
    for (const [queue, due] of counts) this.set(queue, due);
  }

  /** Returns the place. */
  set(queue: string, due: number): QueuePlace {
    const known = this.#byQueue.get(queue);
    if (known === undefined) this.#byQueue.set(queue, { place: placeIn(queue), due });
    else known.due = due;
    return known?.place ?? placeIn(queue);
  }

  /** This server is about to let a job wait: its event is no news. */
  expect(queue: string, id: string): void {
    const step = `${queue}\n${id}`;
    const times = this.#expected.get(step)?.times ?? 0;
    this.#expected.set(step, { times: times + 1, atMs: performance.now() });
  }

  /** This server has let a due job wait, or has taken one. */
  change(queue: string, by: 1 | -1): void {
    this.set(queue, Math.max(0, (this.#byQueue.get(queue)?.due ?? 0) + by));
  }

  /** A job waits, by an event. Returns its place if that is news. */
  hear(queue: string, id: string): QueuePlace | null {
    const step = `${queue}\n${id}`;
    const expected = this.#expected.get(step);
    if (expected === undefined) return this.#wait(queue);
    expected.times -= 1;
    if (expected.times === 0) this.#expected.delete(step);
    return null;
  }

  #wait(queue: string): QueuePlace {
    return this.set(queue, Math.max(1, this.#byQueue.get(queue)?.due ?? 0));
  }

  /** Events may have been missed, or dropped before they were read: what has not come by now does not. */
  forgetLate(): void {
    const lateMs = performance.now() - EVENT_LIMIT_MS;
    for (const [step, { atMs }] of this.#expected) {
      if (atMs > lateMs) return;
      this.#expected.delete(step);
    }
  }
}
