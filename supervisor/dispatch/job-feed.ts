/**
 * The jobs of one model that wait in a store, as the dispatcher sees them. They outlive their clients, and may be many:
 * only those that a free worker is about to begin come here. `jobs/` implements it.
 */
import type { BatchWorker } from './batcher.js';
import type { Call } from './call.js';

export interface JobFeed {
  /** Whether a job may be due for a worker that pulls now; only the pull finds out. */
  readonly mayHaveDue: boolean;
  /** Number of due jobs that wait in the store, as far as this process knows. */
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
  mayHaveDue: false,
  waiting: 0,
  needsApp: false,
  pull: () => Promise.resolve([]),
  close: () => {},
};
