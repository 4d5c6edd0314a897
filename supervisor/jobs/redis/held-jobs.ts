/** The jobs that this server has fetched: it renews their locks, until BullMQ has their outcomes. */
import type { JobRecord } from '../job-record.js';
import type { RedisLink } from './redis-link.js';
import type { ReadJob } from './stored-job.js';

export interface HeldJob extends Omit<ReadJob, 'fetches' | 'record'> {
  /** Names its attempt, and is the value of its lock. */
  readonly token: string;
  /** The name of the worker that has fetched it, for BullMQ. */
  readonly worker: string;
  /** As it runs. */
  record: JobRecord;
  /** Its outcome was sent, and not answered: BullMQ may have it. */
  isUnsure: boolean;
  /** Its lock is another's, or it has ended: no lock is renewed. */
  isGone: boolean;
}

export class HeldJobs {
  readonly #link: RedisLink;
  readonly #lockMs: number;
  readonly #onCancelled: (id: string) => void;
  readonly #byId = new Map<string, HeldJob>();

  constructor(link: RedisLink, lockMs: number, onCancelled: (id: string) => void) {
    this.#link = link;
    this.#lockMs = lockMs;
    this.#onCancelled = onCancelled;
  }

  add(read: Omit<ReadJob, 'fetches'>, token: string, worker: string): HeldJob {
    const job = { ...read, token, worker, isUnsure: false, isGone: false };
    this.#byId.set(job.id, job);
    return job;
  }

  /** Null if this attempt is not held here. */
  get(id: string, token: string): HeldJob | null {
    const job = this.#byId.get(id);
    return job?.token === token ? job : null;
  }

  /** Whether this server runs the job, as far as it knows. */
  runs(id: string): boolean {
    return this.#byId.get(id)?.isGone === false;
  }

  /** Lets go of all that this worker has fetched. */
  releaseOf(worker: string): void {
    for (const job of [...this.#byId.values()]) if (job.worker === worker) this.release(job);
  }

  release(job: HeldJob): void {
    if (this.#byId.get(job.id) === job) this.#byId.delete(job.id);
  }

  /** A client has cancelled this job. */
  cancel(id: string): void {
    const job = this.#byId.get(id);
    if (job === undefined || job.record.isCancelled) return;
    job.record = { ...job.record, isCancelled: true };
    this.#onCancelled(id);
  }

  /** Renews all locks; one whose time is over is set again, as long as nobody has decided that its job is lost. */
  async renew(): Promise<void> {
    await this.#renew([...this.#byId.values()].filter(({ isGone }) => !isGone));
  }

  /** Sets the lock of a job again. Returns false if it is lost, or ended. */
  async retake(job: HeldJob): Promise<boolean> {
    const [said] = await this.#renew([job]);
    return said !== 'gone';
  }

  async #renew(jobs: readonly HeldJob[]): Promise<string[]> {
    if (jobs.length === 0) return [];
    const args = jobs.flatMap(({ id, token, worker }) => [id, token, worker]);
    const said = (await this.#link.run('held', [this.#lockMs, ...args])) as string[];
    for (const [i, job] of jobs.entries()) {
      job.isGone = said[i] === 'gone';
      if (said[i] === 'cancelled') this.cancel(job.id);
    }
    return said;
  }
}
