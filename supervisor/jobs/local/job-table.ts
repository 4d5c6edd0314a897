/**
 * The table of jobs in a local store: follows `job-rules.ts` in SQL. Every call is synchronous and changes the table within
 * a transaction; `TableLoop` opens that, and tells others of its effects once it is committed.
 */
import { ServeError } from '../../../protocol/errors.js';
import { LEAST_JOB_BYTES, bytesOfEnded, bytesOfNew } from '../job-bytes.js';
import {
  hasEnded,
  keptError,
  placeOf,
  type Acceptance,
  type EndedRecord,
  type JobPage,
  type JobProgress,
  type JobRecord,
  type JobTarget,
  type KeptError,
  type ListQuery,
} from '../job-record.js';
import {
  begun,
  cancelled,
  expired,
  expiresAt,
  failedUnrun,
  givenBack,
  settled,
  webhookEnded,
} from '../job-rules.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import type { KeepLimits } from '../job-store.js';
import { DiskRoom, type LookAtDisk } from './disk-room.js';
import type { Database } from './job-database.js';
import { JobRows, type DueRow, type JobRow, type Standing } from './job-rows.js';
import { noRoom } from './sqlite-errors.js';
import { keyOf, placeIn, TableEffects } from './table-effects.js';
import {
  type BegunRow,
  type CountChange,
  type Effects,
  type KeptBytes,
  type TableCalls,
  type TableJob,
  type TableOutcome,
  type TakenWebhook,
  type Need,
} from './table-calls.js';

/** Most jobs that become due, expire or are dropped in one transaction: others wait for it. */
const MAX_TIMELY = 500;

/** Sums over all rows, which would take long to compute. */
interface Sums {
  bytes: number;
  endedBytes: number;
  lastEndOrder: number;
}

interface Report {
  readonly token: string;
  readonly progress: JobProgress;
}

export class JobTable implements TableCalls {
  readonly #database: Database;
  readonly #rows: JobRows;
  readonly #limits: KeepLimits;
  readonly #disk: DiskRoom;
  #sums: Sums;
  readonly #effects = new TableEffects();
  /** The progress of running jobs, not written yet: they are written with the next transaction, without one of their own. */
  #reports = new Map<string, Report>();

  constructor(database: Database, limits: KeepLimits, look: LookAtDisk = () => null) {
    this.#database = database;
    this.#rows = new JobRows(database);
    this.#limits = limits;
    this.#disk = new DiskRoom(look);
    const { all, ended } = this.#rows.countBytes();
    this.#sums = { bytes: all, endedBytes: ended, lastEndOrder: this.#rows.lastEndOrder() };
  }

  /** Runs a step in a transaction, which is on the disk when this returns. @throws with nothing changed */
  transaction<T>(step: () => T): T {
    const before = { sums: { ...this.#sums }, reports: new Map(this.#reports) };
    this.#disk.begin();
    try {
      this.#database.exec('BEGIN IMMEDIATE');
      this.#writeReports();
      const result = step();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      this.#sums = before.sums;
      this.#reports = before.reports;
      this.#effects.take();
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK'); // a full disk has ended it already
      throw error;
    }
  }

  /** Effects of all calls since this was called last. */
  takeEffects(): Effects {
    return this.#effects.take();
  }

  /** Due jobs by place. */
  countWaiting(): CountChange[] {
    return this.#rows.countWaiting().map(({ place, priority, count }) => ({
      place: placeIn(place, priority),
      by: count,
    }));
  }

  files(): Set<string> {
    return this.#rows.files();
  }

  /** Ends the attempts of a server that died: they may have run to any point. */
  recover(): void {
    this.#rows.leaveWebhooks();
    for (const row of this.#rows.running()) {
      const { createdAt, begunAt } = row.record;
      const queueMs = (begunAt ?? createdAt) - createdAt;
      const outcome = { error: SERVER_DIED, runMs: 0, queueMs };
      const record = settled(row.record, outcome, Date.now(), false);
      if (hasEnded(record)) this.#endUnrun(row, record);
      else this.#change(row, record, null);
    }
  }

  accept({ record, call, key, body }: TableJob): Acceptance {
    const known = key === null ? null : this.#rows.byKey(key);
    if (known !== null) {
      this.#effects.gone(body.file);
      const isSame = known.keyContent === key?.content;
      return isSame ? { is: 'known', record: this.#reported(known) } : { is: 'conflict' };
    }
    const bytes = bytesOfNew(call);
    if (!this.#makeRoom(bytes)) {
      this.#effects.gone(body.file);
      return { is: 'full' };
    }
    this.makeRoom({ of: 'job', rowBytes: bytesOfRow(body), fileBytes: 0 });
    const standing = { token: null, endOrder: null, owesWebhook: false, bytes, ...standingOfQueued(record) };
    this.#rows.insert(record, standing, key);
    this.#rows.insertCall(record.id, call, body);
    this.#sums.bytes += bytes;
    this.#effects.moved(record, null, standing.place);
    return { is: 'accepted', record };
  }

  withdraw(id: string): void {
    const row = this.#rows.byId(id);
    if (row?.record.state === 'queued' && row.record.attempts === 0) this.#forget(row);
  }

  begin(target: JobTarget, token: string): readonly BegunRow[] {
    const nowMs = Date.now();
    this.tick(); // the clock may have been set: what has expired must not begin
    return this.#next(target, nowMs).map(({ seq }) => {
      const row = this.#rows.bySeq(seq);
      const record = begun(row.record, target.version, nowMs);
      this.#write(row, record, token);
      this.#effects.changed(record);
      return { record, call: this.#rows.call(seq), body: this.#rows.body(seq) };
    });
  }

  giveBack(id: string, token: string, isLoss: boolean): void {
    const row = this.#marked(id, token);
    if (row !== null) this.#giveBack(row, isLoss);
  }

  takeBack(token: string): void {
    for (const row of this.#rows.running()) if (row.token === token) this.#giveBack(row, false);
  }

  failMarked(id: string, token: string, error: KeptError): void {
    const row = this.#marked(id, token);
    if (row === null) return;
    this.#reports.delete(id);
    const nowMs = Date.now();
    const waiting = givenBack(row.record, false, nowMs);
    this.#endUnrun(row, hasEnded(waiting) ? waiting : failedUnrun(waiting, error, nowMs));
  }

  settle(id: string, token: string, outcome: TableOutcome, isAgain: boolean): JobRecord | null {
    const row = this.#marked(id, token);
    if (row === null) {
      if (!('error' in outcome)) this.#effects.gone(outcome.body.file);
      const last = isAgain ? this.#rows.byId(id) : null;
      return last?.token === token ? last.record : null;
    }
    const isKept = !('error' in outcome) && this.#hasRoomFor(row, outcome);
    const record = settled(this.#reported(row), { ...outcome, body: null }, Date.now(), !isKept);
    this.#reports.delete(id);
    if (isKept) this.#rows.insertResult(row.seq, outcome.body);
    this.#change(row, record, token, isKept ? outcome.bytes : 0);
    return record;
  }

  progress(id: string, token: string, progress: JobProgress): void {
    const row = this.#marked(id, token);
    if (row === null) return;
    this.#reports.set(id, { token, progress });
    this.#effects.changed({ ...row.record, progress });
  }

  cancel(id: string): JobRecord | null {
    const row = this.#rows.byId(id);
    if (row === null) return null;
    const { record } = row;
    const next = cancelled(record, Date.now());
    if (record.state === 'queued') this.#endUnrun(row, next as EndedRecord);
    else if (record.state === 'running') {
      this.#rows.updateRecord(row.seq, next);
      this.#effects.cancelled(id);
    }
    return this.#reported(row);
  }

  get(id: string): JobRecord | null {
    const row = this.#rows.byId(id);
    return row === null ? null : this.#reported(row);
  }

  readResult(id: string): KeptBytes | null {
    const row = this.#rows.byId(id);
    return row === null ? null : this.#rows.result(row.seq);
  }

  list({ state, limit, from }: ListQuery): JobPage {
    const rows = this.#rows.list(state, from, limit + 1);
    const next = rows[limit]?.seq ?? null;
    return { records: rows.slice(0, limit).map((row) => this.#reported(row)), next };
  }

  owe(webhook: Webhook): void {
    if (!this.makeRoom({ of: 'result', rowBytes: webhook.body.length, fileBytes: 0 })) throw noRoom();
    this.#rows.insertWebhook(webhook);
  }

  forgetWebhook(id: string): void {
    this.#rows.removeWebhook(id);
  }

  endWebhook(jobId: string): void {
    const row = this.#rows.byId(jobId);
    if (row === null || !hasEnded(row.record) || !row.record.end.owesWebhook) return;
    this.#rows.removeCall(row.seq);
    this.#rows.endWebhook(row.seq, webhookEnded(row.record));
    this.#sums.endedBytes += row.bytes;
  }

  takeWebhooks(limit: number): TakenWebhook[] {
    const jobs = this.#rows.takeOwing(limit).map(({ seq, record }): TakenWebhook => ({
      of: 'job',
      record: record as EndedRecord,
      call: this.#rows.call(seq),
      body: this.#rows.result(seq),
    }));
    const webhooks = this.#rows.takeWebhooks(limit - jobs.length);
    return [...jobs, ...webhooks.map((webhook): TakenWebhook => ({ of: 'app', webhook }))];
  }

  makeRoom(need: Need): boolean {
    const dropped = { count: 0 };
    if (this.#disk.take(need, () => this.#dropFor(dropped))) return true;
    if (need.of === 'result' && !this.#disk.couldHave(need)) return false;
    throw noRoom(); // which takes back what was dropped
  }

  probe(): void {
    this.makeRoom({ of: 'job', rowBytes: 0, fileBytes: 0 });
    this.#rows.writeAgain();
  }

  /** Time of the next `tick`; Infinity if none is needed. */
  nextMs(): number {
    const oldest = this.#rows.oldestEnded();
    const dropMs = oldest === null ? Infinity : oldest.endedAt + this.#limits.retentionMs;
    return Math.min(dropMs, this.#rows.earliestMs());
  }

  /** Lets jobs become due or expire, and drops those that ended long ago: some hundred at a time. */
  tick(): void {
    const nowMs = Date.now();
    for (let i = 0; i < MAX_TIMELY; i += 1) {
      const oldest = this.#rows.oldestEnded();
      if (oldest === null || oldest.endedAt + this.#limits.retentionMs > nowMs) break;
      this.#forget(oldest);
    }
    for (const row of this.#rows.timely(nowMs, MAX_TIMELY)) {
      if (expiresAt(row.record) <= nowMs) this.#endUnrun(row, expired(row.record, nowMs));
      else this.#write(row, row.record, null);
    }
  }

  /** The first job for this target, and those of its route that may begin with it. */
  #next({ model, version, isDefault, routes }: JobTarget, nowMs: number): DueRow[] {
    const versions = isDefault ? [version, null] : [version];
    const at = (route: string, limit: number): DueRow[] =>
      versions
        .flatMap((one) => this.#rows.waiting(keyOf({ model, version: one, route }), nowMs, limit))
        .sort(byUrgency)
        .slice(0, limit);
    const [first] = Array.from(routes.keys(), (route) => ({ route, job: at(route, 1)[0] }))
      .filter((one): one is { route: string; job: DueRow } => one.job !== undefined)
      .sort((a, b) => byUrgency(a.job, b.job));
    return first === undefined ? [] : at(first.route, routes.get(first.route) ?? 0);
  }

  #marked(id: string, token: string): JobRow | null {
    const row = this.#rows.byId(id);
    return row?.record.state === 'running' && row.token === token ? row : null;
  }

  #giveBack(row: JobRow, isLoss: boolean): void {
    this.#reports.delete(row.record.id);
    const record = givenBack(row.record, isLoss, Date.now());
    if (hasEnded(record)) this.#endUnrun(row, record);
    else this.#change(row, record, null);
  }

  /** The attempt at a job is over: it has ended, or waits again. */
  #change(row: JobRow, record: JobRecord, token: string | null, resultBytes = 0): void {
    this.#write(row, record, token, resultBytes);
    this.#effects.changed(record);
  }

  #endUnrun(row: JobRow, record: EndedRecord): void {
    this.#effects.endedUnrun(record, this.#rows.call(row.seq));
    this.#change(row, record, null);
  }

  #write(row: JobRow, record: JobRecord, token: string | null, resultBytes = 0): void {
    const standing = hasEnded(record)
      ? this.#standingOfEnded(row, record, bytesOfEnded(resultBytes))
      : {
          bytes: row.bytes,
          endOrder: null,
          owesWebhook: false,
          ...(record.state === 'queued' ? standingOfQueued(record) : IN_NO_LINE),
        };
    this.#rows.update(row.seq, record, { token, ...standing });
    this.#effects.moved(record, row.place, standing.place);
  }

  /** Its body is dropped, and its call unless the webhook needs that; then the job itself may not be dropped yet. */
  #standingOfEnded(
    { seq, bytes: before }: JobRow,
    { end }: EndedRecord,
    bytes: number,
  ): Omit<Standing, 'token'> {
    const { owesWebhook } = end;
    this.#effects.gone(owesWebhook ? this.#rows.removeBody(seq) : this.#rows.removeCall(seq));
    this.#sums.bytes += bytes - before;
    if (!owesWebhook) this.#sums.endedBytes += bytes;
    this.#sums.lastEndOrder += 1;
    return { bytes, endOrder: this.#sums.lastEndOrder, owesWebhook, ...IN_NO_LINE };
  }

  /** Whether the result fits in place of what its job counts for now; ended jobs are dropped for it. */
  #hasRoomFor(row: JobRow, { body, bytes }: Answer): boolean {
    const moreBytes = bytesOfEnded(bytes) - row.bytes;
    const isThere = body.bytes !== null || body.file !== null;
    if (isThere && (moreBytes <= 0 || this.#makeRoom(moreBytes)) && this.#fitsOnDisk(body)) return true;
    this.#effects.gone(body.file);
    return false;
  }

  /** The smallest take the room of what goes with the end of their jobs. @throws ENOSPC if it may fit later */
  #fitsOnDisk(body: KeptBytes): boolean {
    const rowBytes = bytesOfRow(body);
    return rowBytes <= LEAST_JOB_BYTES || this.makeRoom({ of: 'result', rowBytes, fileBytes: 0 });
  }

  /** Drops the oldest ended job. Returns the bytes of its file; null if there is none, or if enough were dropped. */
  #dropFor(dropped: { count: number }): number | null {
    const oldest = dropped.count < MAX_TIMELY ? this.#rows.oldestEnded() : null;
    if (oldest === null) return null;
    dropped.count += 1;
    return this.#forget(oldest) === null ? 0 : oldest.bytes;
  }

  /** Drops ended jobs, the oldest first, until so many more bytes fit. Returns false, and drops none, if they cannot. */
  #makeRoom(moreBytes: number): boolean {
    const { maxBytes } = this.#limits;
    if (this.#sums.bytes - this.#sums.endedBytes + moreBytes > maxBytes) return false;
    while (this.#sums.bytes + moreBytes > maxBytes) {
      const oldest = this.#rows.oldestEnded();
      if (oldest === null) return false;
      this.#forget(oldest);
    }
    return true;
  }

  /** Returns the name of its result's file, if it had one. */
  #forget(row: JobRow): string | null {
    const file = this.#rows.removeResult(row.seq);
    for (const gone of [this.#rows.removeCall(row.seq), file]) this.#effects.gone(gone);
    this.#rows.remove(row.seq);
    this.#sums.bytes -= row.bytes;
    if (hasEnded(row.record)) this.#sums.endedBytes -= row.bytes; // one that owes its webhook is not dropped
    this.#effects.moved(row.record, row.place, null);
    return file;
  }

  #reported({ record, token }: JobRow): JobRecord {
    const report = this.#reports.get(record.id);
    return report === undefined || report.token !== token ? record : { ...record, progress: report.progress };
  }

  #writeReports(): void {
    for (const [id, { token, progress }] of this.#reports) {
      const row = this.#marked(id, token);
      if (row !== null) this.#rows.updateRecord(row.seq, { ...row.record, progress });
    }
    this.#reports.clear();
  }
}

type Answer = Exclude<TableOutcome, { readonly error: unknown }>;

function bytesOfRow({ bytes }: KeptBytes): number {
  return Math.max(LEAST_JOB_BYTES, bytes?.length ?? 0);
}

const IN_NO_LINE = { place: null, at: null };

const SERVER_DIED = keptError(
  new ServeError('SERVE_WORKER_LOST', 'The server ended while this job ran; it may have run to any point.'),
);

/** A job that is not due waits for that; one that is due waits at its place, and may expire. */
function standingOfQueued(record: JobRecord): Pick<Standing, 'place' | 'at'> {
  if (record.dueAt > Date.now()) return { place: null, at: record.dueAt };
  const expiryMs = expiresAt(record);
  return { place: keyOf(placeOf(record)), at: expiryMs === Infinity ? null : expiryMs };
}

function byUrgency(a: DueRow, b: DueRow): number {
  return b.priority - a.priority || a.seq - b.seq;
}
