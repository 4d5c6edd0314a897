/**
 * The book of jobs: follows `job-rules.ts`, and decides which job is next, what expires and what is dropped. Its rows lie in
 * memory or in a database. Each step is synchronous and whole.
 */
import {
  hasEnded,
  type Acceptance,
  type EndedRecord,
  type JobPage,
  type JobProgress,
  type JobRecord,
  type JobState,
  type JobTarget,
  type ListQuery,
  type NewJob,
  type Outcome,
} from './job-record.js';
import {
  begun,
  bytesOfEnded,
  bytesOfNew,
  cancelled,
  expired,
  expiresAt,
  givenBack,
  settled,
} from './job-rules.js';
import type { KeepLimits, Tell } from './job-store.js';

/** A job in the book. */
export interface JobRow {
  /** In order of acceptance. */
  readonly seq: number;
  readonly record: JobRecord;
  /** Bytes that it counts for. */
  readonly bytes: number;
  /** Names its last attempt; null before the first one. */
  readonly token: string | null;
  readonly keyContent: string | null;
}

/** The part of a job that its worker gets. */
export type Input<Body> = Pick<NewJob<Body>, 'body' | 'call'>;

/** The columns that follow from the state of a job. */
export interface Standing extends Pick<JobRow, 'token' | 'bytes'> {
  /** Whether it is due and waits for a worker. */
  readonly isWaiting: boolean;
  /** When it is due or expires; null if neither. */
  readonly at: number | null;
  /** Whether it has ended and its webhook is owed: until that is sent its call stays, and it may not be dropped. */
  readonly isOwed: boolean;
}

export interface Rows<Row extends JobRow, Body, Result> {
  byId(id: string): Row | null;
  byKey(scope: string): Row | null;
  /** In order of acceptance. */
  inState(state: JobState): readonly Row[];
  /** The most urgent job that waits for this target, then in order of acceptance; and those of its route that may begin with it. */
  next(target: JobTarget, nowMs: number): readonly Row[];
  /** Queued jobs whose time has come, to be due or to expire. */
  timely(nowMs: number, limit: number): readonly Row[];
  /** The earliest time for `timely`; Infinity if there is none. */
  earliestMs(): number;
  /** The job that ended first, of those that may be dropped. */
  oldestEnded(): Row | null;
  /** One more than `limit`, if there are so many. */
  list(query: ListQuery): readonly Row[];
  insert(entry: NewJob<Body>, standing: Standing): void;
  /** The body of a job that has ended goes. */
  write(row: Row, record: JobRecord, standing: Standing): void;
  remove(row: Row): void;
  input(row: Row): Input<Body>;
  keepResult(row: Row, result: Result): void;
  result(row: Row): Result | null;
}

/** Sums over all rows, which would take long to compute, and the next time at which the clock matters. */
export interface BookState {
  bytes: number;
  /** Bytes of jobs that may be dropped. */
  endedBytes: number;
  /** Nothing is due, expires or is dropped before. */
  nextMs: number;
}

/** Most jobs that become due, expire or are dropped in one step: others wait for it. */
export const MAX_TIMELY = 500;

export class JobBook<Row extends JobRow, Body, Result, R extends Rows<Row, Body, Result>> {
  readonly rows: R;
  protected state: BookState = { bytes: 0, endedBytes: 0, nextMs: Infinity };
  readonly #limits: KeepLimits;
  readonly #tell: Tell;
  /** Whether it keeps what webhooks need until they are sent. */
  readonly #keepsWebhooks: boolean;

  constructor(rows: R, limits: KeepLimits, tell: Tell, keepsWebhooks: boolean) {
    this.rows = rows;
    this.#limits = limits;
    this.#tell = tell;
    this.#keepsWebhooks = keepsWebhooks;
  }

  /** Time of the next `tick`; Infinity if none is needed. */
  get nextMs(): number {
    return this.state.nextMs;
  }

  /** Null: it is accepted. */
  accept(entry: NewJob<Body>): Acceptance | null {
    const { record, call, key } = entry;
    const known = key === null ? null : this.rows.byKey(key.scope);
    if (known !== null)
      return known.keyContent === key?.content ? { is: 'known', record: known.record } : { is: 'conflict' };
    // An id that a client has chosen is its key; a job that has a key of another kind, or none, may have that id.
    if (key?.scope === record.id && this.rows.byId(record.id) !== null) return { is: 'conflict' };
    const bytes = bytesOfNew(call);
    if (!this.#makeRoom(bytes)) return { is: 'full' };
    this.admit(entry.body);
    this.state.bytes += bytes;
    const standing = this.#standing(record, null, bytes);
    this.rows.insert(entry, standing);
    if (standing.isWaiting) this.#tell('onDue', record.model);
    return null;
  }

  withdraw(id: string): void {
    const row = this.rows.byId(id);
    if (row?.record.state === 'queued' && row.record.attempts === 0) this.forget(row);
  }

  begin(target: JobTarget, token: string): (Input<Body> & Pick<NewJob, 'record'>)[] {
    const nowMs = Date.now();
    this.tick(); // the clock may have been set: what has expired must not begin
    return this.rows.next(target, nowMs).map((row) => {
      const record = begun(row.record, target.version, nowMs);
      this.change(row, record, token);
      return { record, ...this.rows.input(row) };
    });
  }

  giveBack(id: string, token: string, isLoss: boolean): void {
    const row = this.begunRow(id, token);
    if (row !== null) this.giveBackRow(row, isLoss);
  }

  /** `result`: the bytes of an answer; null if there is none to be kept. */
  settle(id: string, token: string, outcome: Outcome, result: Result | null): JobRecord | null {
    const row = this.begunRow(id, token);
    if (row === null) return null;
    const bytes = 'error' in outcome ? 0 : outcome.bytes;
    const isKept = result !== null && this.#hasRoomFor(row, bytes, result);
    const record = settled(row.record, outcome, Date.now(), !isKept);
    if (isKept) this.rows.keepResult(row, result);
    this.change(row, record, token, isKept ? bytes : 0);
    return record;
  }

  progress(id: string, token: string, progress: JobProgress): void {
    const row = this.begunRow(id, token);
    if (row !== null) this.change(row, { ...row.record, progress }, token);
  }

  cancel(id: string): JobRecord | null {
    const row = this.rows.byId(id);
    if (row === null) return null;
    const { record } = row;
    const next = cancelled(record, Date.now());
    if (record.state === 'queued') this.endUnrun(row, next as EndedRecord);
    else if (record.state === 'running') {
      this.#write(row, next, row.token);
      this.#tell('onCancelled', id);
    }
    return record;
  }

  get(id: string): JobRecord | null {
    return this.rows.byId(id)?.record ?? null;
  }

  readResult(id: string): Result | null {
    const row = this.rows.byId(id);
    return row === null ? null : this.rows.result(row);
  }

  list(query: ListQuery): JobPage {
    const rows = this.rows.list(query);
    const next = rows[query.limit]?.seq ?? null;
    return { records: rows.slice(0, query.limit).map(({ record }) => record), next };
  }

  /** Lets jobs become due or expire, and drops those that ended long ago: some hundred at a time. */
  tick(): void {
    const nowMs = Date.now();
    if (nowMs < this.state.nextMs) return;
    let oldest = this.rows.oldestEnded();
    for (let i = 0; oldest !== null && this.#dropAtMs(oldest.record) <= nowMs && i < MAX_TIMELY; i += 1) {
      this.forget(oldest);
      oldest = this.rows.oldestEnded();
    }
    const due: string[] = [];
    for (const row of this.rows.timely(nowMs, MAX_TIMELY)) {
      if (expiresAt(row.record) <= nowMs) this.endUnrun(row, expired(row.record, nowMs));
      else if (this.#write(row, row.record, null)) due.push(row.record.model);
    }
    oldest = this.rows.oldestEnded();
    const dropMs = oldest === null ? Infinity : this.#dropAtMs(oldest.record);
    this.state.nextMs = Math.min(dropMs, this.rows.earliestMs());
    for (const model of due) this.#tell('onDue', model); // who hears it may begin a job at once
  }

  /** Called before a job with this body is entered. @throws if there is no room for it now */
  protected admit(_body: Body): void {}

  /** Whether there is room for this result, besides that among the bytes of all jobs. */
  protected fits(_result: Result): boolean {
    return true;
  }

  /** The row of this attempt, which has begun and has not ended. */
  protected begunRow(id: string, token: string): Row | null {
    const row = this.rows.byId(id);
    return row?.record.state === 'running' && row.token === token ? row : null;
  }

  protected giveBackRow(row: Row, isLoss: boolean): void {
    const record = givenBack(row.record, isLoss, Date.now());
    if (hasEnded(record)) this.endUnrun(row, record);
    else this.change(row, record, null);
  }

  protected change(row: Row, record: JobRecord, token: string | null, resultBytes = 0): void {
    const isWaiting = this.#write(row, record, token, resultBytes);
    this.#tell('onChanged', record);
    if (isWaiting) this.#tell('onDue', record.model); // who hears it may begin the job at once
  }

  /** A job ends that no worker runs. */
  endUnrun(row: Row, record: EndedRecord): void {
    this.#tell('onEndedUnrun', record, this.rows.input(row).call);
    this.change(row, record, null);
  }

  protected forget(row: Row): void {
    this.rows.remove(row);
    this.state.bytes -= row.bytes;
    if (hasEnded(row.record)) this.state.endedBytes -= row.bytes; // one that owes its webhook is not dropped
  }

  /** A job that has ended, and counts for so many bytes, may be dropped: later, or for others. */
  protected mayDrop(record: JobRecord, bytes: number): void {
    this.state.endedBytes += bytes;
    this.#lookAt(this.#dropAtMs(record));
  }

  /** Returns whether it waits for a worker. */
  #write(row: Row, record: JobRecord, token: string | null, resultBytes = 0): boolean {
    const bytes = hasEnded(record) ? bytesOfEnded(resultBytes) : row.bytes;
    const standing = this.#standing(record, token, bytes);
    this.state.bytes += bytes - row.bytes;
    if (hasEnded(record) && !standing.isOwed) this.mayDrop(record, bytes);
    this.rows.write(row, record, standing);
    return standing.isWaiting;
  }

  /** A job that is not due waits for that; one that is due waits for a worker, and may expire. */
  #standing(record: JobRecord, token: string | null, bytes: number): Standing {
    const isQueued = record.state === 'queued';
    const isWaiting = isQueued && record.dueAt <= Date.now();
    const atMs = isWaiting ? expiresAt(record) : isQueued ? record.dueAt : Infinity;
    this.#lookAt(atMs);
    const isOwed = this.#keepsWebhooks && record.end?.owesWebhook === true;
    return { token, bytes, isWaiting, at: atMs === Infinity ? null : atMs, isOwed };
  }

  #lookAt(atMs: number): void {
    if (atMs < this.state.nextMs) this.state.nextMs = atMs;
  }

  #dropAtMs({ end }: JobRecord): number {
    return (end?.endedAt ?? Infinity) + this.#limits.retentionMs;
  }

  /** Whether the result fits in place of what its job counts for now; ended jobs are dropped for it. */
  #hasRoomFor(row: JobRow, bytes: number, result: Result): boolean {
    const moreBytes = bytesOfEnded(bytes) - row.bytes;
    return (moreBytes <= 0 || this.#makeRoom(moreBytes)) && this.fits(result);
  }

  /** Drops ended jobs, the oldest first, until so many more bytes fit. Returns false, and drops none, if they cannot. */
  #makeRoom(moreBytes: number): boolean {
    const { maxBytes } = this.#limits;
    if (this.state.bytes - this.state.endedBytes + moreBytes > maxBytes) return false;
    while (this.state.bytes + moreBytes > maxBytes) {
      const oldest = this.rows.oldestEnded();
      if (oldest === null) return false;
      this.forget(oldest);
    }
    return true;
  }
}

/** Longest time without a look at the clock, which may have been set. */
const MAX_SLEEP_MS = 60_000;

/** Time after which a failed look is repeated. */
const RETRY_MS = 1000;

/** The single timer of a book, for the job that is due, expires or is dropped first. */
export class BookTimer {
  readonly #book: { readonly nextMs: number };
  readonly #tick: () => void;
  #timer: NodeJS.Timeout | null = null;
  #atMs = Infinity;

  constructor(book: { readonly nextMs: number }, tick: () => void) {
    this.#book = book;
    this.#tick = tick;
  }

  /** The next time may be an earlier one now. */
  watch(leastMs = 1): void {
    const { nextMs } = this.#book;
    if (nextMs >= this.#atMs) return; // it looks again when it fires
    this.stop();
    this.#atMs = nextMs;
    const sleepMs = Math.min(MAX_SLEEP_MS, Math.max(leastMs, nextMs - Date.now()));
    this.#timer = setTimeout(() => this.#look(), sleepMs).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#atMs = Infinity;
  }

  #look(): void {
    this.stop();
    try {
      this.#tick();
    } catch {
      return this.watch(RETRY_MS); // a call that meets the same failure reports it
    }
    this.watch();
  }
}
