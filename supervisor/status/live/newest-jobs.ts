/** Reads the newest jobs while the page has viewers. Their store may take long or fail; it is never waited for. */
import type { JobRecord, KeptJobs } from '../../jobs/kept-jobs.js';

const JOBS_SHOWN = 100;

export class NewestJobs {
  readonly #jobs: () => Pick<KeptJobs, 'list'>;
  #records: readonly JobRecord[] = [];
  #isReading = false;

  constructor(jobs: () => Pick<KeptJobs, 'list'>) {
    this.#jobs = jobs;
  }

  /** As of the last reading, newest first. */
  get records(): readonly JobRecord[] {
    return this.#records;
  }

  /** Begins a reading if the last one is over. */
  look(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    const take = (records: readonly JobRecord[]): void => {
      this.#records = records;
      this.#isReading = false;
    };
    this.#jobs()
      .list({ state: null, limit: JOBS_SHOWN, from: null })
      .then(
        ({ records }) => take(records),
        () => take(this.#records), // it is tried again
      );
  }

  /** The last viewer has left: the jobs would be old. */
  forget(): void {
    this.#records = [];
  }
}
