/**
 * Keeps the records of jobs in memory: they are lost with the process, and `recover` returns none.
 *
 * Their number is bounded: unfinished jobs are bounded by the queue and the workers; of the ended ones, the oldest are
 * dropped when they are too many, too large or too old.
 */
import type { JobEnd, JobRecord, JobStore } from './job-store.js';

export interface KeepLimits {
  readonly keepMs: number;
  readonly maxJobs: number;
  /** Size of all results together. */
  readonly maxBytes: number;
}

/** Banana's clients may poll for ten minutes; even a small server has this much memory. */
export const KEEP_LIMITS: KeepLimits = { keepMs: 15 * 60_000, maxJobs: 10_000, maxBytes: 256 * 1024 * 1024 };

interface Ended {
  readonly endedAt: number;
  readonly bytes: number;
}

export class MemoryStore implements JobStore {
  readonly #limits: KeepLimits;
  readonly #records = new Map<string, JobRecord>();
  /** Ended jobs, in the order of their ends. */
  readonly #ended = new Map<string, Ended>();
  #bytes = 0;
  #sweep: NodeJS.Timeout | null = null;

  constructor(limits: KeepLimits = KEEP_LIMITS) {
    this.#limits = limits;
  }

  get maxResultBytes(): number {
    return this.#limits.maxBytes / 4;
  }

  get size(): number {
    return this.#records.size;
  }

  accept(record: JobRecord): Promise<void> {
    this.#records.set(record.id, record);
    return Promise.resolve();
  }

  begun(id: string, begunAt: number): void {
    this.#change(id, { begunAt });
  }

  ended(id: string, end: JobEnd): void {
    this.#change(id, { end });
    const bytes = end.result?.body?.length ?? 0;
    this.#ended.set(id, { endedAt: end.endedAt, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= this.#limits.maxJobs && this.#bytes <= this.#limits.maxBytes) break;
      this.#forget(oldest);
    }
    this.#watch();
  }

  get(id: string): JobRecord | null {
    return this.#records.get(id) ?? null;
  }

  recover(): Promise<readonly JobRecord[]> {
    return Promise.resolve([]);
  }

  close(): void {
    if (this.#sweep !== null) clearTimeout(this.#sweep);
    this.#sweep = null;
  }

  #change(id: string, change: Partial<JobRecord>): void {
    const record = this.#records.get(id);
    if (record !== undefined) this.#records.set(id, { ...record, ...change });
  }

  /** Sets the single timer, for the job that ended first. */
  #watch(): void {
    const [oldest] = this.#ended.values();
    if (oldest === undefined || this.#sweep !== null) return;
    this.#sweep = setTimeout(() => this.#sweepOld(), this.#ageLeftMs(oldest));
    this.#sweep.unref();
  }

  #sweepOld(): void {
    this.#sweep = null;
    for (const [id, ended] of this.#ended) {
      if (this.#ageLeftMs(ended) > 0) break;
      this.#forget(id);
    }
    this.#watch();
  }

  #ageLeftMs({ endedAt }: Ended): number {
    return endedAt + this.#limits.keepMs - Date.now();
  }

  #forget(id: string): void {
    this.#bytes -= this.#ended.get(id)?.bytes ?? 0;
    this.#ended.delete(id);
    this.#records.delete(id);
  }
}
