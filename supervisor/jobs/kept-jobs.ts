/**
 * Keeps jobs that outlive their request: background calls, and those of the gateway. Each is known by an id of the
 * server's own until some time after its end, its result included.
 *
 * While a job runs here, it is an object that takes the answer; a store has it on record, and alone knows it after its
 * end.
 */
import type { Job } from '../dispatch/job.js';
import type { JobStore } from './job-store.js';
import { KeptJob, endOf } from './kept-job.js';
import { MemoryStore } from './memory-store.js';

export type { KeptResult, KeptState } from './job-store.js';
export { KeptJob } from './kept-job.js';

export class KeptJobs {
  readonly #store: JobStore;
  readonly #newId: () => string;
  readonly #tell: (job: KeptJob) => void;
  /** Those that have not ended. */
  readonly #running = new Map<string, KeptJob>();
  /** Those of them that the store knows to have begun. */
  readonly #begun = new Set<string>();

  /** `onEnded` is told of every job, once, when it has ended. */
  constructor(
    newId: () => string,
    onEnded: (job: KeptJob) => void = () => {},
    store: JobStore = new MemoryStore(),
  ) {
    this.#newId = newId;
    this.#tell = onEnded;
    this.#store = store;
  }

  /** Number of known jobs, ended ones included. */
  get size(): number {
    return this.#store.size;
  }

  get(id: string): KeptJob | null {
    const running = this.#running.get(id);
    if (running !== undefined) {
      if (running.state === 'running') this.#noteBegun(id);
      return running;
    }
    const record = this.#store.get(id);
    return record === null ? null : new KeptJob(record, null, null);
  }

  /** Takes a job over from its caller: the answer comes here. */
  keep(job: Job): KeptJob {
    const { requestId, model, version, route } = job.call;
    const facts = { id: this.#newId(), requestId, model, version, route };
    const record = { ...facts, createdAt: Date.now(), begunAt: null, end: null };
    const { maxResultBytes } = this.#store;
    const kept = new KeptJob(record, job, { maxResultBytes, onEnded: (ended) => this.#onEnded(ended) });
    this.#running.set(kept.id, kept);
    void this.#store.accept(record, job);
    job.detach(kept);
    return kept;
  }

  /** Ids of those that have not ended. */
  unfinished(): string[] {
    return [...this.#running.keys()];
  }

  close(): void {
    this.#store.close();
  }

  #noteBegun(id: string): void {
    if (this.#begun.has(id)) return;
    this.#begun.add(id);
    this.#store.begun(id, Date.now());
  }

  #onEnded(job: KeptJob): void {
    this.#tell(job);
    if (job.runMs > 0) this.#noteBegun(job.id);
    this.#begun.delete(job.id);
    this.#running.delete(job.id);
    this.#store.ended(job.id, endOf(job));
  }
}
