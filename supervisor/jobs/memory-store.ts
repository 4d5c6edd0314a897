/**
 * Keeps jobs in memory: they are lost with the process. Bodies and results are bounded together; when room runs short, the
 * jobs that ended first are dropped.
 */
import { shuttingDown } from '../../protocol/errors.js';
import { bytesOfEnded, bytesOfNew } from './job-bytes.js';
import {
  hasEnded,
  keptError,
  placeOf,
  type Acceptance,
  type BegunJob,
  type IdempotencyKey,
  type JobPage,
  type JobProgress,
  type JobRecord,
  type JobTarget,
  type KeptWebhook,
  type ListQuery,
  type NewJob,
  type Outcome,
  type StoredBody,
  type StoredCall,
  type WaitingPlace,
} from './job-record.js';
import { begun, cancelled, expired, expiresAt, failedUnrun, givenBack, settled } from './job-rules.js';
import { NO_LISTENER, type JobStore, type JobStoreListener, type KeepLimits } from './job-store.js';
import { TimeHeap, type Timed } from './time-heap.js';
import { WaitingJobs, type WaitingJob } from './waiting-jobs.js';

/** Everything that an attempt needs. */
interface Input {
  readonly call: StoredCall;
  readonly body: StoredBody;
}

interface Entry extends WaitingJob, Timed {
  record: JobRecord;
  readonly key: IdempotencyKey | null;
  /** Null once it has ended. */
  input: Input | null;
  /** The mark of its present attempt; null while it waits. */
  token: string | null;
  result: Buffer | null;
  /** Bytes that it counts for. */
  bytes: number;
}

/** Longest time without a look at the clock, which may have been set. */
const MAX_SLEEP_MS = 60_000;

export class MemoryStore implements JobStore {
  readonly name = 'memory';
  readonly isDurable = false;
  listener: JobStoreListener = NO_LISTENER;
  readonly #limits: KeepLimits;
  /** In order of acceptance. */
  readonly #entries = new Map<string, Entry>();
  readonly #byKey = new Map<string, Entry>();
  /** Jobs that are due. */
  readonly #waiting = new WaitingJobs<Entry>();
  /** Queued jobs, by the time at which they are due; those that are due by that at which they expire. */
  readonly #times = new TimeHeap<Entry>();
  /** In the order of their ends. */
  readonly #ended = new Set<Entry>();
  #order = 0;
  #bytes = 0;
  #endedBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #timerAtMs = Infinity;

  constructor(limits: KeepLimits) {
    this.#limits = limits;
  }

  hasDue(model: string): boolean {
    return this.#waiting.hasAny(model);
  }

  waiting(target: JobTarget): number {
    return this.#waiting.count(target);
  }

  places(): WaitingPlace[] {
    return this.#waiting.places();
  }

  accept({ record, call, body, key }: NewJob): Promise<Acceptance> {
    const known = key === null ? undefined : this.#byKey.get(key.scope);
    if (known !== undefined) {
      const isSame = known.key?.content === key?.content;
      return Promise.resolve(isSame ? { is: 'known', record: known.record } : { is: 'conflict' });
    }
    const bytes = bytesOfNew(call);
    if (!this.#makeRoom(bytes)) return Promise.resolve({ is: 'full' });
    this.#order += 1;
    const state = { token: null, result: null, bytes };
    const place = { order: this.#order, place: placeOf(record), atMs: 0, heapIndex: -1 };
    const entry: Entry = { record, input: { call, body }, key, ...state, ...place };
    this.#bytes += bytes;
    this.#entries.set(record.id, entry);
    if (key !== null) this.#byKey.set(key.scope, entry);
    this.#queue(entry);
    return Promise.resolve({ is: 'accepted', record });
  }

  withdraw(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry?.record.state === 'queued' && entry.record.attempts === 0) {
      this.#leaveQueue(entry);
      this.#forget(entry);
    }
    return DONE;
  }

  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    const nowMs = Date.now();
    this.#tick(nowMs); // the clock may have been set: what has expired must not begin
    const jobs = this.#waiting.take(target).map((entry) => {
      this.#times.remove(entry);
      entry.record = begun(entry.record, target.version, nowMs);
      entry.token = token;
      this.listener.onChanged(entry.record);
      const { call, body } = entry.input as Input; // it has not ended
      return { record: entry.record, call, pieces: body.pieces };
    });
    return Promise.resolve(jobs);
  }

  giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    const entry = this.#marked(id, token);
    if (entry === null) return DONE;
    const record = givenBack(entry.record, isLoss, Date.now());
    if (hasEnded(record)) this.#endUnrun(entry, record);
    else this.#change(entry, record);
    return DONE;
  }

  settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    const entry = this.#marked(id, token);
    if (entry === null) return Promise.resolve(null);
    const body = 'error' in outcome ? null : this.#roomFor(entry, outcome.body);
    if (!('error' in outcome)) entry.input?.body.release(); // an answer proves that the worker has read all of it
    entry.result = body;
    this.#change(entry, settled(entry.record, outcome, Date.now(), body === null));
    return Promise.resolve(entry.record);
  }

  progress(id: string, token: string, progress: JobProgress): void {
    const entry = this.#marked(id, token);
    if (entry === null) return;
    entry.record = { ...entry.record, progress };
    this.listener.onChanged(entry.record);
  }

  cancel(id: string): Promise<JobRecord | null> {
    const entry = this.#entries.get(id);
    if (entry === undefined) return Promise.resolve(null);
    const { record } = entry;
    if (record.state === 'queued') this.#endUnrun(entry, cancelled(record, Date.now()));
    else entry.record = cancelled(record, Date.now());
    if (record.state === 'running') this.listener.onCancelled(id);
    return Promise.resolve(record);
  }

  get(id: string): Promise<JobRecord | null> {
    return Promise.resolve(this.#entries.get(id)?.record ?? null);
  }

  readResult(id: string): Promise<Buffer | null> {
    return Promise.resolve(this.#entries.get(id)?.result ?? null);
  }

  list({ state, limit, from }: ListQuery): Promise<JobPage> {
    const records: JobRecord[] = [];
    let next: number | null = null;
    for (const { record, order } of [...this.#entries.values()].reverse()) {
      if ((from !== null && order > from) || (state !== null && record.state !== state)) continue;
      if (records.length === limit) {
        next = order;
        break;
      }
      records.push(record);
    }
    return Promise.resolve({ records, next });
  }

  /** Webhooks are lost with this process anyway. */
  owe(): Promise<void> {
    return DONE;
  }

  forgetWebhook(): Promise<void> {
    return DONE;
  }

  endWebhook(): Promise<void> {
    return DONE;
  }

  takeWebhooks(): Promise<readonly KeptWebhook[]> {
    return NO_WEBHOOKS;
  }

  queuedHere(): string[] {
    return this.#queued().map(({ record }) => record.id);
  }

  stop(): Promise<void> {
    for (const entry of this.#queued()) this.#endUnrun(entry, failedUnrun(entry.record, STOPPED, Date.now()));
    return DONE;
  }

  close(): Promise<void> {
    this.#stopTimer();
    return DONE;
  }

  #queued(): Entry[] {
    return [...this.#entries.values()].filter(({ record }) => record.state === 'queued');
  }

  #marked(id: string, token: string): Entry | null {
    const entry = this.#entries.get(id);
    return entry?.token === token ? entry : null;
  }

  /** The attempt at a job is over: it has ended, or waits again. */
  #change(entry: Entry, record: JobRecord): void {
    entry.token = null;
    if (hasEnded(record)) {
      this.#end(entry, record);
      return;
    }
    entry.record = record;
    this.#queue(entry);
    this.listener.onChanged(record);
  }

  /** Puts a queued job where it waits until it is due, or for a worker. */
  #queue(entry: Entry): void {
    const { record } = entry;
    const isDue = record.dueAt <= Date.now();
    entry.atMs = isDue ? expiresAt(record) : record.dueAt;
    if (entry.atMs < Infinity) this.#times.add(entry);
    this.#watch();
    if (!isDue) return;
    this.#waiting.add(entry);
    this.listener.onDue(record.model);
  }

  #leaveQueue(entry: Entry): void {
    this.#waiting.remove(entry);
    this.#times.remove(entry);
  }

  #endUnrun(entry: Entry, record: JobRecord): void {
    this.#leaveQueue(entry);
    entry.token = null;
    if (!hasEnded(record) || entry.input === null) return;
    this.listener.onEndedUnrun(record, entry.input.call);
    this.#end(entry, record);
  }

  #end(entry: Entry, record: JobRecord): void {
    entry.record = record;
    entry.input = null;
    this.#count(entry, bytesOfEnded(entry.result?.length ?? 0));
    this.#ended.add(entry);
    this.#endedBytes += entry.bytes;
    this.#watch();
    this.listener.onChanged(record);
  }

  /** Returns the body if there is room for it in place of what the job counts for now; else null. */
  #roomFor(entry: Entry, body: Buffer | null): Buffer | null {
    const moreBytes = bytesOfEnded(body?.length ?? 0) - entry.bytes;
    return body === null || (moreBytes > 0 && !this.#makeRoom(moreBytes)) ? null : body;
  }

  /** Drops ended jobs, the oldest first, until so many more bytes fit. Returns false, and drops none, if they cannot. */
  #makeRoom(moreBytes: number): boolean {
    const { maxBytes } = this.#limits;
    if (this.#bytes - this.#endedBytes + moreBytes > maxBytes) return false;
    for (const oldest of this.#ended) {
      if (this.#bytes + moreBytes <= maxBytes) break;
      this.#forget(oldest);
    }
    return true;
  }

  #count(entry: Entry, bytes: number): void {
    this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
  }

  #forget(entry: Entry): void {
    this.#bytes -= entry.bytes;
    if (this.#ended.delete(entry)) this.#endedBytes -= entry.bytes;
    this.#entries.delete(entry.record.id);
    if (entry.key !== null) this.#byKey.delete(entry.key.scope);
  }

  /** Sets the single timer, for the job that is due, expires or is dropped first. */
  #watch(): void {
    const [oldest] = this.#ended;
    const dropMs = oldest === undefined ? Infinity : this.#dropAtMs(oldest);
    const nextMs = Math.min(dropMs, this.#times.earliestMs);
    if (nextMs >= this.#timerAtMs) return; // it looks again when it fires
    this.#stopTimer();
    this.#timerAtMs = nextMs;
    const sleepMs = Math.min(MAX_SLEEP_MS, Math.max(1, nextMs - Date.now()));
    this.#timer = setTimeout(() => {
      this.#stopTimer();
      this.#tick(Date.now());
      this.#watch();
    }, sleepMs);
    this.#timer.unref();
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#timerAtMs = Infinity;
  }

  #tick(nowMs: number): void {
    for (const ended of this.#ended) {
      if (this.#dropAtMs(ended) > nowMs) break;
      this.#forget(ended);
    }
    for (let entry = this.#times.takeDue(nowMs); entry !== null; entry = this.#times.takeDue(nowMs)) {
      if (expiresAt(entry.record) <= nowMs) this.#endUnrun(entry, expired(entry.record, nowMs));
      else this.#queue(entry);
    }
  }

  #dropAtMs({ record }: Entry): number {
    return (record.end?.endedAt ?? Infinity) + this.#limits.retentionMs;
  }
}

const DONE = Promise.resolve();
const NO_WEBHOOKS = Promise.resolve([]);
const STOPPED = keptError(shuttingDown());
