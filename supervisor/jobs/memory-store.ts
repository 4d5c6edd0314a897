/**
 * Keeps jobs in memory: they are lost with the process.
 *
 * Their number is bounded: unfinished jobs are bounded by the queue and the workers; of the ended ones, the oldest are
 * dropped when they are too many, too large or too old.
 */
import { ServeError } from '../../protocol/errors.js';
import {
  hasEnded,
  keptError,
  type BegunJob,
  type EndedRecord,
  type JobRecord,
  type JobTarget,
  type KeptError,
  type NewJob,
  type Outcome,
  type StoredBody,
  type StoredCall,
} from './job-record.js';
import { begun, failedUnrun, givenBack, settled } from './job-rules.js';
import type { JobStore, JobStoreListener } from './job-store.js';
import { TimeHeap, type Timed } from './time-heap.js';
import { WaitingJobs, type WaitingJob } from './waiting-jobs.js';

export interface KeepLimits {
  readonly keepMs: number;
  readonly maxJobs: number;
  /** Size of all results together. */
  readonly maxBytes: number;
}

/** Banana's clients may poll for ten minutes; even a small server has this much memory. */
export const KEEP_LIMITS: KeepLimits = { keepMs: 15 * 60_000, maxJobs: 10_000, maxBytes: 256 * 1024 * 1024 };

interface Entry extends WaitingJob, Timed {
  record: JobRecord;
  readonly call: StoredCall;
  /** Null once it has ended. */
  body: StoredBody | null;
  /** The mark of its present attempt; null while it waits. */
  token: string | null;
  result: Buffer | null;
}

export class MemoryStore implements JobStore {
  listener: JobStoreListener = { onDue() {}, onEnded() {}, onEndedUnrun() {} };
  readonly #limits: KeepLimits;
  /** In order of acceptance. */
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new WaitingJobs<Entry>();
  readonly #expiring = new TimeHeap<Entry>();
  /** Ended jobs, in the order of their ends. */
  readonly #ended = new Set<Entry>();
  #order = 0;
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #timerAtMs = Infinity;

  constructor(limits: KeepLimits = KEEP_LIMITS) {
    this.#limits = limits;
  }

  get maxResultBytes(): number {
    return this.#limits.maxBytes / 4;
  }

  get size(): number {
    return this.#entries.size;
  }

  waiting(target: JobTarget): number {
    return this.#waiting.count(target);
  }

  accept({ record, call, body, expiresAt }: NewJob): Promise<void> {
    const { model, version, route } = record;
    const place = { model, version, route };
    this.#order += 1;
    const times = { order: this.#order, atMs: expiresAt, heapIndex: -1 };
    const entry: Entry = { record, call, body, place, ...times, token: null, result: null };
    this.#entries.set(record.id, entry);
    this.#expiring.add(entry);
    this.#wait(entry);
    this.#watch();
    return DONE;
  }

  withdraw(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry === undefined || !this.#waiting.remove(entry)) return DONE;
    this.#expiring.remove(entry);
    this.#entries.delete(id);
    return DONE;
  }

  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    const nowMs = Date.now();
    const jobs = this.#waiting.take(target).map((entry) => {
      entry.record = begun(entry.record, nowMs);
      entry.token = token;
      this.#expiring.remove(entry);
      const { record, call, body } = entry;
      return { record, call, pieces: body?.pieces ?? [] };
    });
    return Promise.resolve(jobs);
  }

  giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    const entry = this.#marked(id, token);
    if (entry === null) return DONE;
    entry.record = givenBack(entry.record, isLoss);
    entry.token = null;
    this.#wait(entry);
    return DONE;
  }

  settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    const entry = this.#marked(id, token);
    if (entry === null) return Promise.resolve(null);
    const body = 'error' in outcome ? null : outcome.body;
    entry.result = body;
    if (!('error' in outcome)) entry.body?.release(); // an answer proves that the worker has read all of it
    this.#end(entry, settled(entry.record, outcome, Date.now(), body === null));
    return Promise.resolve(entry.record);
  }

  get(id: string): Promise<JobRecord | null> {
    return Promise.resolve(this.#entries.get(id)?.record ?? null);
  }

  readResult(id: string): Promise<Buffer | null> {
    return Promise.resolve(this.#entries.get(id)?.result ?? null);
  }

  unfinished(): string[] {
    return [...this.#entries.values()]
      .filter(({ record }) => !hasEnded(record))
      .map(({ record }) => record.id);
  }

  failWaiting(target: JobTarget, error: KeptError): void {
    for (const entry of this.#waiting.all(target)) this.#failUnrun(entry, error);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#timerAtMs = Infinity;
  }

  #wait(entry: Entry): void {
    this.#waiting.add(entry);
    this.listener.onDue(entry.record.model);
  }

  #marked(id: string, token: string): Entry | null {
    const entry = this.#entries.get(id);
    return entry?.token === token ? entry : null;
  }

  #failUnrun(entry: Entry, error: KeptError): void {
    this.#waiting.remove(entry);
    this.#expiring.remove(entry);
    const record = failedUnrun(entry.record, error, Date.now());
    this.listener.onEndedUnrun(record, entry.call);
    this.#end(entry, record);
  }

  #end(entry: Entry, record: EndedRecord): void {
    entry.record = record;
    entry.body = null;
    entry.token = null;
    this.#ended.add(entry);
    this.#bytes += bytesOf(entry);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= this.#limits.maxJobs && this.#bytes <= this.#limits.maxBytes) break;
      this.#forget(oldest);
    }
    this.#watch();
    this.listener.onEnded(record);
  }

  /** Sets the single timer, for the job that expires or is dropped first. */
  #watch(): void {
    const [oldest] = this.#ended;
    const dropMs = oldest === undefined ? Infinity : this.#dropAtMs(oldest);
    const nextMs = Math.min(dropMs, this.#expiring.earliestMs);
    if (nextMs >= this.#timerAtMs) return; // it looks again when it fires
    this.close();
    this.#timerAtMs = nextMs;
    this.#timer = setTimeout(() => this.#sweep(), Math.max(1, nextMs - Date.now()));
    this.#timer.unref();
  }

  #sweep(): void {
    this.close();
    const nowMs = Date.now();
    for (const ended of this.#ended) {
      if (this.#dropAtMs(ended) > nowMs) break;
      this.#forget(ended);
    }
    for (let entry = this.#expiring.takeDue(nowMs); entry !== null; entry = this.#expiring.takeDue(nowMs))
      this.#failUnrun(entry, EXPIRED);
    this.#watch();
  }

  #dropAtMs({ record }: Entry): number {
    return (record.end?.endedAt ?? Infinity) + this.#limits.keepMs;
  }

  #forget(entry: Entry): void {
    this.#bytes -= bytesOf(entry);
    this.#ended.delete(entry);
    this.#entries.delete(entry.record.id);
  }
}

const DONE = Promise.resolve();
const EXPIRED = keptError(new ServeError('SERVE_QUEUE_TIMEOUT'));

function bytesOf({ result }: Entry): number {
  return result?.length ?? 0;
}
