/**
 * The jobs of one model that wait in a store, as the dispatcher sees them. They outlive their clients, and may be many:
 * only those that a free worker is about to begin come here. `jobs/` implements it.
 */
import type { BatchWorker } from './batcher.js';
import type { Call, ReadyWorker } from './call.js';

export interface JobFeed {
  /** Number of due jobs that wait in the store, as far as this process knows; only a pull finds out. Zero while none may begin. */
  readonly waiting: number;
  /** Whether due jobs wait that only the app, which no worker has loaded yet, can tell to have a route. */
  readonly needsApp: boolean;
  /**
   * Begins jobs in the store for this worker, which is idle and stays so until the promise settles. Resolves with jobs that
   * begin together, in order; with none if none is due. Never rejects.
   */
  pull(worker: BatchWorker): Promise<readonly Call[]>;
  /** The model takes no job any more. */
  close(): void;
}

/** The feed of a model without such jobs. */
export const NO_FEED: JobFeed = {
  waiting: 0,
  needsApp: false,
  pull: () => Promise.resolve([]),
  close: () => {},
};

/** Pulls jobs from the store for workers that are free, in turn with the calls that wait in line. */
export class JobPulls {
  readonly #feed: JobFeed;
  readonly #onPulled: (worker: ReadyWorker, calls: readonly Call[]) => void;
  /** Workers that wait for the store; each keeps a place free meanwhile. */
  readonly workers = new Set<ReadyWorker>();
  /** Workers that got a call while jobs waited: the next thing that they get is a job. */
  readonly #jobIsNext = new WeakSet<ReadyWorker>();
  #isAwake = false;
  #wakes = 0;

  /** `onPulled` gets the jobs of each pull, which may be none. */
  constructor(feed: JobFeed, onPulled: (worker: ReadyWorker, calls: readonly Call[]) => void) {
    this.#feed = feed;
    this.#onPulled = onPulled;
  }

  /** Whether a job may be due. Once none is, the store is not asked again before `wake`: a call makes no job due. */
  get mayHaveDue(): boolean {
    this.#isAwake &&= this.#feed.waiting > this.workers.size;
    return this.#isAwake;
  }

  /** A job may be due now. */
  wake(): void {
    this.#isAwake = true;
    this.#wakes += 1;
  }

  /**
   * The workers that may get calls. While jobs wait too, nothing is sent ahead, and each worker takes a call and a job in
   * turn, so that neither starves.
   */
  callableOf(workers: readonly ReadyWorker[]): readonly ReadyWorker[] {
    const { mayHaveDue } = this;
    return workers.filter((worker) => {
      if (this.workers.has(worker) && worker.load + 1 >= worker.places) return false;
      return !mayHaveDue || (worker.load < worker.places && !this.#jobIsNext.has(worker));
    });
  }

  /** The worker gets a call while jobs wait. */
  noteCall(worker: ReadyWorker): void {
    this.#jobIsNext.add(worker);
  }

  /** Pulls for those of these workers that have a free place; for frozen ones only if all are, as for calls. */
  begin(workers: readonly ReadyWorker[]): void {
    const areAllFrozen = workers.every(({ isFrozen }) => isFrozen);
    for (const worker of workers) {
      if (!this.mayHaveDue) return;
      if (worker.load >= worker.places || this.workers.has(worker)) continue;
      if (worker.isFrozen && !areAllFrozen) continue;
      this.workers.add(worker);
      const wakes = this.#wakes;
      void this.#feed.pull(worker).then((calls) => {
        this.workers.delete(worker);
        this.#jobIsNext.delete(worker);
        this.#isAwake = calls.length > 0 || wakes !== this.#wakes; // else another one would find nothing either
        this.#onPulled(worker, calls);
      });
    }
  }
}
