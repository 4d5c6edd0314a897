/** The rows of a book of jobs in memory. */
import { Heap } from './heap.js';
import type { Entry, Input, JobRow, Kept, Rows, Standing } from './job-book.js';
import {
  hasEnded,
  placeOf,
  type EndedRecord,
  type IdempotencyKey,
  type JobRecord,
  type JobState,
  type JobTarget,
  type ListQuery,
  type StoredBody,
} from './job-record.js';
import { WaitingJobs, type WaitingJob } from './waiting-jobs.js';

export interface InMemory extends Kept {
  readonly row: MemoryRow;
  readonly body: StoredBody;
  readonly result: Buffer;
}

export interface MemoryRow extends JobRow, WaitingJob {
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
  input: Input<InMemory> | null;
  result: Buffer | null;
}

export class MemoryRows implements Rows<InMemory> {
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

  insert({ record, call, key, body }: Entry<InMemory>, bytes: number, standing: Standing): void {
    this.#seq += 1;
    const older = this.#newest;
    const row: MemoryRow = {
      seq: this.#seq,
      record,
      bytes,
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

  update(row: MemoryRow, record: JobRecord, standing: Standing): void {
    if (row.record.state === 'queued') this.#leave(row);
    row.record = record;
    row.token = standing.token;
    this.#stand(row, standing);
  }

  updateRecord(row: MemoryRow, record: JobRecord): void {
    row.record = record;
  }

  end(row: MemoryRow, record: EndedRecord, token: string | null, bytes: number): void {
    if (row.record.state === 'queued') this.#leave(row);
    Object.assign(row, { record, token, bytes, input: null });
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

  input({ input }: MemoryRow): Input<InMemory> {
    return input as Input<InMemory>; // it has not ended
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
