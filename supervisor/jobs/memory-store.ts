/** Keeps jobs in memory: they are lost with the process. */
import { shuttingDown } from '../../protocol/errors.js';
import { Heap } from './heap.js';
import { BookTimer, JobBook, type Input, type JobRow, type Rows, type Standing } from './job-book.js';
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
  type JobState,
  type JobTarget,
  type KeptWebhook,
  type ListQuery,
  type NewJob,
  type Outcome,
  type StoredBody,
} from './job-record.js';
import { failedUnrun } from './job-rules.js';
import { StoreBase, type JobStore, type KeepLimits } from './job-store.js';
import { WaitingJobs, type WaitingJob } from './waiting-jobs.js';

interface MemoryRow extends JobRow, WaitingJob {
  readonly seq: number;
  record: JobRecord;
  bytes: number;
  token: string | null;
  /** When it is due or expires, while it is queued. */
  atMs: number;
  timeIndex: number;
  /** The job that was accepted before this one, and the one after it; null if there is none. */
  older: MemoryRow | null;
  newer: MemoryRow | null;
  readonly key: IdempotencyKey | null;
  /** Null once it has ended. */
  input: Input<StoredBody> | null;
  result: Buffer | null;
}

class MemoryRows implements Rows<MemoryRow, StoredBody, Buffer> {
  readonly waiting = new WaitingJobs<MemoryRow>();
  /** In order of acceptance. */
  readonly #rows = new Map<string, MemoryRow>();
  readonly #byKey = new Map<string, MemoryRow>();
  /** Queued jobs, by the time at which they are due; those that are due by that at which they expire. */
  readonly #times = new Heap<'timeIndex', MemoryRow>('timeIndex', ({ atMs }) => atMs);
  /** In the order of their ends. */
  readonly #ended = new Set<MemoryRow>();
  #newest: MemoryRow | null = null;
  #seq = 0;

  byId(id: string): MemoryRow | null {
    return this.#rows.get(id) ?? null;
  }

  byKey(scope: string): MemoryRow | null {
    return this.#byKey.get(scope) ?? null;
  }

  inState(state: JobState): MemoryRow[] {
    return [...this.#rows.values()].filter(({ record }) => record.state === state);
  }

  next(target: JobTarget): MemoryRow[] {
    return this.waiting.take(target);
  }

  /** All of them, so that none which has expired is next. */
  timely(nowMs: number): MemoryRow[] {
    const rows: MemoryRow[] = [];
    for (let row = this.#times.first; row !== undefined && row.atMs <= nowMs; row = this.#times.first) {
      this.#times.remove(row);
      rows.push(row);
    }
    return rows;
  }

  earliestMs(): number {
    return this.#times.least;
  }

  oldestEnded(): MemoryRow | null {
    const [oldest = null] = this.#ended;
    return oldest;
  }

  list({ state, limit, from }: ListQuery): MemoryRow[] {
    const rows: MemoryRow[] = [];
    for (let row = this.#newest; row !== null && rows.length <= limit; row = row.older) {
      if ((from === null || row.seq <= from) && (state === null || row.record.state === state))
        rows.push(row);
    }
    return rows;
  }

  insert({ record, call, key, body }: NewJob, standing: Standing): void {
    this.#seq += 1;
    const older = this.#newest;
    const row: MemoryRow = {
      seq: this.#seq,
      record,
      bytes: standing.bytes,
      token: null,
      key,
      keyContent: key?.content ?? null,
      input: { call, body },
      result: null,
      place: placeOf(record),
      atMs: 0,
      timeIndex: -1,
      queueIndex: -1,
      older,
      newer: null,
    };
    if (older !== null) older.newer = row;
    this.#newest = row;
    this.#rows.set(record.id, row);
    if (key !== null) this.#byKey.set(key.scope, row);
    this.#stand(row, standing);
  }

  write(row: MemoryRow, record: JobRecord, standing: Standing): void {
    if (row.record.state === 'queued') this.#leave(row);
    row.record = record;
    row.token = standing.token;
    row.bytes = standing.bytes;
    this.#stand(row, standing);
    if (!hasEnded(record)) return;
    row.input = null;
    this.#ended.add(row);
  }

  remove(row: MemoryRow): void {
    if (!hasEnded(row.record)) this.#leave(row);
    const { older, newer } = row;
    if (older !== null) older.newer = newer;
    if (newer !== null) newer.older = older;
    else this.#newest = older;
    this.#ended.delete(row);
    this.#rows.delete(row.record.id);
    if (row.key !== null) this.#byKey.delete(row.key.scope);
  }

  input({ input }: MemoryRow): Input<StoredBody> {
    return input as Input<StoredBody>; // it has not ended
  }

  keepResult(row: MemoryRow, result: Buffer): void {
    row.result = result;
  }

  result({ result }: MemoryRow): Buffer | null {
    return result;
  }

  #stand(row: MemoryRow, { isWaiting, at }: Standing): void {
    if (isWaiting) this.waiting.add(row);
    if (at === null) return;
    row.atMs = at;
    this.#times.add(row);
  }

  #leave(row: MemoryRow): void {
    this.waiting.remove(row);
    this.#times.remove(row);
  }
}

export class MemoryStore extends StoreBase implements JobStore {
  readonly name = 'memory';
  readonly isDurable = false;
  readonly #rows = new MemoryRows();
  protected readonly counts = this.#rows.waiting;
  readonly #book: JobBook<MemoryRow, StoredBody, Buffer, MemoryRows>;
  readonly #timer: BookTimer;

  constructor(limits: KeepLimits) {
    super();
    this.#book = new JobBook(this.#rows, limits, this.tell, false);
    this.#timer = new BookTimer(this.#book, () => this.#book.tick());
  }

  accept(job: NewJob): Promise<Acceptance> {
    return this.#done(this.#book.accept(job) ?? { is: 'accepted', record: job.record });
  }

  withdraw(id: string): Promise<void> {
    return this.#done(this.#book.withdraw(id));
  }

  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    const begun = this.#book.begin(target, token);
    return this.#done(begun.map(({ record, call, body }) => ({ record, call, pieces: body.pieces })));
  }

  giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    return this.#done(this.#book.giveBack(id, token, isLoss));
  }

  settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    const input = this.#rows.byId(id)?.input;
    const record = this.#book.settle(id, token, outcome, 'error' in outcome ? null : outcome.body);
    // An answer proves that the worker has read all of the body.
    if (record !== null && !('error' in outcome)) input?.body.release();
    return this.#done(record);
  }

  progress(id: string, token: string, progress: JobProgress): void {
    this.#book.progress(id, token, progress);
  }

  cancel(id: string): Promise<JobRecord | null> {
    return this.#done(this.#book.cancel(id));
  }

  get(id: string): Promise<JobRecord | null> {
    return Promise.resolve(this.#book.get(id));
  }

  readResult(id: string): Promise<Buffer | null> {
    return Promise.resolve(this.#book.readResult(id));
  }

  list(query: ListQuery): Promise<JobPage> {
    return Promise.resolve(this.#book.list(query));
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

  override queuedHere(): string[] {
    return this.#rows.inState('queued').map(({ record }) => record.id);
  }

  override stop(): Promise<void> {
    for (const row of this.#rows.inState('queued'))
      this.#book.endUnrun(row, failedUnrun(row.record, STOPPED, Date.now()));
    return DONE;
  }

  close(): Promise<void> {
    this.#timer.stop();
    return DONE;
  }

  /** Answers, and sets the timer if its time comes earlier now. */
  #done<T>(answer: T): Promise<T> {
    this.#timer.watch();
    return Promise.resolve(answer);
  }
}

const DONE = Promise.resolve();
const NO_WEBHOOKS = Promise.resolve([]);
const STOPPED = keptError(shuttingDown());
