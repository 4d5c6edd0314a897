/**
 * The book of jobs in a database. Every call is synchronous and changes it within a transaction; `TableLoop` opens that, and
 * tells others of its effects once it is committed.
 */
import { ServeError } from '../../../protocol/errors.js';
import { JobBook, MAX_TIMELY, type BookState } from '../job-book.js';
import {
  hasEnded,
  keptError,
  type Acceptance,
  type EndedRecord,
  type JobRecord,
  type KeptError,
  type KeptWebhook,
  type NewJob,
  type Outcome,
} from '../job-record.js';
import { failedUnrun, givenBack, LEAST_JOB_BYTES, lost, webhookEnded } from '../job-rules.js';
import type { KeepLimits, StoreEvent } from '../job-store.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import type { KeptBytes } from './body-files.js';
import { DiskRoom, type LookAtDisk, type Need } from './disk-room.js';
import type { Database } from './job-database.js';
import { JobRows, type TableRow } from './job-rows.js';
import { noRoom } from './sqlite-errors.js';

export class JobTable extends JobBook<TableRow, KeptBytes, KeptBytes, JobRows> {
  readonly #database: Database;
  readonly #disk: DiskRoom;

  constructor(database: Database, limits: KeepLimits, look: LookAtDisk = () => null) {
    const rows = new JobRows(database);
    // Places where jobs wait, which are counted, say what is due.
    const note = (...event: StoreEvent): void =>
      void (event[0] !== 'onDue' && rows.effects.events.push(event));
    super(rows, limits, note, true);
    this.#database = database;
    this.#disk = new DiskRoom(look);
    this.state = { ...rows.countBytes(), nextMs: 0 };
  }

  /** Runs a step in a transaction, which is on the disk when this returns. @throws with nothing changed */
  transaction<T>(step: () => T): T {
    const before: BookState = { ...this.state };
    this.#disk.begin();
    try {
      this.#database.exec('BEGIN IMMEDIATE');
      const result = step();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      this.state = before;
      this.rows.takeBack();
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK'); // a full disk has ended it already
      throw error;
    }
  }

  /** Ends the attempts of a server that died: they may have run to any point. */
  recover(): void {
    this.rows.leaveWebhooks();
    for (const row of this.rows.inState('running')) {
      const record = lost(row.record, SERVER_DIED, Date.now());
      if (hasEnded(record)) this.endUnrun(row, record);
      else this.change(row, record, null);
    }
  }

  override accept(job: NewJob<KeptBytes>): Acceptance | null {
    const refusal = super.accept(job);
    if (refusal !== null) this.rows.gone(job.body.file);
    return refusal;
  }

  /** Gives back all jobs with this token, if any: their begin was answered with a failure. */
  takeBack(token: string): void {
    for (const row of this.rows.inState('running')) if (row.token === token) this.giveBackRow(row, false);
  }

  /** Ends a begun job that no worker can begin. */
  failBegun(id: string, token: string, error: KeptError): void {
    const row = this.begunRow(id, token);
    if (row === null) return;
    const nowMs = Date.now();
    const waiting = givenBack(row.record, false, nowMs);
    this.endUnrun(row, hasEnded(waiting) ? waiting : failedUnrun(waiting, error, nowMs));
  }

  /** `isAgain`: an earlier call may have been done, though its answer never came; then its record is returned again. */
  override settle(
    id: string,
    token: string,
    outcome: Outcome,
    result: KeptBytes | null,
    isAgain = false,
  ): JobRecord | null {
    const record = super.settle(id, token, outcome, result);
    if (record?.end?.result?.isDropped !== false) this.rows.gone(result?.file ?? null);
    if (record !== null || !isAgain) return record;
    const last = this.rows.byId(id);
    return last?.token === token ? last.record : null;
  }

  owe(webhook: Webhook): void {
    if (!this.makeRoom({ of: 'result', rowBytes: webhook.body.length, fileBytes: 0 })) throw noRoom();
    this.rows.insertWebhook(webhook);
  }

  forgetWebhook(id: string): void {
    this.rows.removeWebhook(id);
  }

  endWebhook(jobId: string): void {
    const row = this.rows.byId(jobId);
    if (row === null || !hasEnded(row.record) || !row.record.end.owesWebhook) return;
    this.rows.endWebhook(row, webhookEnded(row.record));
    this.mayDrop(row.record, row.bytes);
  }

  takeWebhooks(limit: number): KeptWebhook<KeptBytes>[] {
    const jobs = this.rows.takeOwing(limit).map((row) => ({
      of: 'job' as const,
      record: row.record as EndedRecord,
      call: this.rows.input(row).call,
      body: this.rows.result(row),
    }));
    const webhooks = this.rows.takeWebhooks(limit - jobs.length);
    return [...jobs, ...webhooks.map((webhook) => ({ of: 'app' as const, webhook }))];
  }

  /**
   * Makes room on the disk for a body or a result that is to be a file, whose job is not changed; the files that go for it are
   * among the effects. Returns false if the disk can never hold it. @throws ENOSPC if others need the room
   */
  makeRoom(need: Need): boolean {
    let dropped = 0;
    const drop = (): number | null => {
      const oldest = dropped < MAX_TIMELY ? this.rows.oldestEnded() : null;
      if (oldest === null) return null;
      dropped += 1;
      const isFile = (this.rows.result(oldest)?.file ?? null) !== null;
      this.forget(oldest);
      return isFile ? oldest.bytes : 0;
    };
    if (this.#disk.take(need, drop)) return true;
    if (need.of === 'result' && !this.#disk.couldHave(need)) return false;
    throw noRoom(); // which takes back what was dropped
  }

  /** Looks whether a small job would be accepted, and writes something, which changes nothing. @throws ENOSPC */
  probe(): void {
    this.makeRoom({ of: 'job', rowBytes: 0, fileBytes: 0 });
    this.rows.writeAgain();
  }

  protected override admit(body: KeptBytes): void {
    this.makeRoom({ of: 'job', rowBytes: bytesOfRow(body), fileBytes: 0 });
  }

  /** The smallest take the room of what goes with the end of their jobs. @throws ENOSPC if it may fit later */
  protected override fits(result: KeptBytes): boolean {
    const rowBytes = bytesOfRow(result);
    return rowBytes <= LEAST_JOB_BYTES || this.makeRoom({ of: 'result', rowBytes, fileBytes: 0 });
  }
}

function bytesOfRow({ bytes }: KeptBytes): number {
  return Math.max(LEAST_JOB_BYTES, bytes?.length ?? 0);
}

const SERVER_DIED = keptError(
  new ServeError('SERVE_WORKER_LOST', 'The server ended while this job ran; it may have run to any point.'),
);
