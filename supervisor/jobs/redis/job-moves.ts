/** One transition of a job: reads its record, computes the next one, writes it, and begins anew if another front came first. */
import { hasEnded, type JobRecord } from '../job-record.js';
import type { JobStoreListener } from '../job-store.js';
import type { Change, JobRecords, Stored } from './job-records.js';
import type { JobClock } from './redis-clock.js';

export interface Step extends Change {
  readonly record: JobRecord;
  /** No worker was running it: if it ends, that is told. */
  readonly isUnrun?: boolean;
}

export interface Moved {
  readonly was: Stored;
  readonly record: JobRecord;
}

export class JobMoves {
  readonly #records: JobRecords;
  readonly #clock: JobClock;
  readonly #listener: () => JobStoreListener;
  readonly #onEnded: (record: JobRecord) => void;

  /** `onEnded`: this front has stored the end of a job. */
  constructor(
    records: JobRecords,
    clock: JobClock,
    listener: () => JobStoreListener,
    onEnded: (record: JobRecord) => void,
  ) {
    this.#records = records;
    this.#clock = clock;
    this.#listener = listener;
    this.#onEnded = onEnded;
  }

  /** `next` returns null if the job is not in a state for it. Null if nothing was written. */
  async move(id: string, next: (was: Stored, nowMs: number) => Step | null): Promise<Moved | null> {
    for (;;) {
      const was = await this.#records.read(id);
      if (was === null) return null;
      const nowMs = this.#clock.now();
      const step = next(was, nowMs);
      if (step === null) return null;
      const mayBeTold = step.isUnrun === true && hasEnded(step.record);
      const call = mayBeTold ? await this.#records.readCall(id) : null;
      const changed = await this.#records.change(was, step.record, nowMs, step);
      if (changed.is === 'moved') continue;
      if (changed.is !== 'done') return null;
      const { record } = changed;
      if (hasEnded(record)) this.#onEnded(record);
      if (call !== null && hasEnded(record)) this.#listener().onEndedUnrun(record, call);
      this.#listener().onChanged(record);
      return { was, record };
    }
  }
}
