/** The SQL of the table of jobs: reads and writes rows, and knows no rule of jobs. */
import type { StatementSyncInstance } from '@photostructure/sqlite';
import type { IdempotencyKey, JobRecord, JobState, StoredCall } from '../job-record.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import { VERSION, type Database } from './job-database.js';
import type { KeptBytes } from './table-calls.js';

/** A job in the table. */
export interface JobRow {
  /** In order of acceptance. */
  readonly seq: number;
  readonly record: JobRecord;
  /** Bytes that it counts for. */
  readonly bytes: number;
  /** The mark of its last attempt. */
  readonly token: string | null;
  /** The place at which it waits since it is due; else null. */
  readonly place: string | null;
  readonly keyContent: string | null;
}

/** The columns that follow from the state of a job. */
export interface Standing {
  readonly token: string | null;
  readonly place: string | null;
  /** When it is due or expires; null if neither. */
  readonly at: number | null;
  readonly endOrder: number | null;
  /** Whether its webhook is owed; this process sends it. */
  readonly owesWebhook: boolean;
  readonly bytes: number;
}

export interface DueRow {
  readonly seq: number;
  readonly priority: number;
}

const ROW = 'SELECT seq, record, bytes, token, place, key_content FROM jobs';

export class JobRows {
  readonly #database: Database;
  readonly #prepared = new Map<string, StatementSyncInstance>();

  constructor(database: Database) {
    this.#database = database;
  }

  byId(id: string): JobRow | null {
    return this.#row(`${ROW} WHERE id = ?`, id);
  }

  bySeq(seq: number): JobRow {
    return this.#row(`${ROW} WHERE seq = ?`, seq) as JobRow;
  }

  byKey({ scope }: IdempotencyKey): JobRow | null {
    return this.#row(`${ROW} WHERE key_scope = ?`, scope);
  }

  running(): JobRow[] {
    return this.#rows(`${ROW} WHERE state = 'running' ORDER BY seq`);
  }

  /** The ended job that ended first, of those that may be dropped. */
  oldestEnded(): (JobRow & { readonly endedAt: number }) | null {
    const row = this.#row(`${ROW} WHERE end_order IS NOT NULL AND owes IS NULL ORDER BY end_order LIMIT 1`);
    return row === null ? null : { ...row, endedAt: row.record.end?.endedAt ?? 0 };
  }

  /** Due jobs at a place that have not expired, in the order in which they begin. */
  waiting(place: string, nowMs: number, limit: number): DueRow[] {
    const sql = `SELECT seq, priority FROM jobs WHERE place = ? AND (at IS NULL OR at > ?)
      ORDER BY priority DESC, seq LIMIT ?`;
    return this.#all(sql, place, nowMs, limit) as unknown as DueRow[];
  }

  /** Queued jobs whose time has come, to be due or to expire. */
  timely(nowMs: number, limit: number): JobRow[] {
    return this.#rows(`${ROW} WHERE at <= ? ORDER BY at, seq LIMIT ?`, nowMs, limit);
  }

  /** The earliest time for `timely`; Infinity if there is none. */
  earliestMs(): number {
    const { at } = this.#get('SELECT min(at) AS at FROM jobs WHERE at IS NOT NULL') as { at: number | null };
    return at ?? Infinity;
  }

  /** Number of due jobs, by place and priority. */
  countWaiting(): { place: string; priority: number; count: number }[] {
    const sql = `SELECT place, priority, count(*) AS count FROM jobs WHERE place IS NOT NULL
      GROUP BY place, priority`;
    return this.#all(sql) as never;
  }

  /** From `from` on, the newest first. */
  list(state: JobState | null, from: number | null, limit: number): JobRow[] {
    const which = state === null ? '' : 'state = ? AND';
    const given = state === null ? [] : [state];
    const sql = `${ROW} WHERE ${which} seq <= ? ORDER BY seq DESC LIMIT ?`;
    return this.#rows(sql, ...given, from ?? Number.MAX_SAFE_INTEGER, limit);
  }

  /** Bytes of all jobs, and of those that may be dropped. */
  countBytes(): { all: number; ended: number } {
    const sql = `SELECT coalesce(sum(bytes), 0) AS "all",
      coalesce(sum(bytes) FILTER (WHERE end_order IS NOT NULL AND owes IS NULL), 0) AS ended FROM jobs`;
    return this.#get(sql) as never;
  }

  /** The highest number of an end. */
  lastEndOrder(): number {
    const row = this.#get('SELECT max(end_order) AS last FROM jobs') as { last: number | null };
    return row.last ?? 0;
  }

  insert(record: JobRecord, standing: Standing, key: IdempotencyKey | null): void {
    const { id, state, priority } = record;
    const { bytes, place, at } = standing;
    const sql = `INSERT INTO jobs (id, state, record, priority, bytes, place, at, key_scope, key_content)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    const { scope = null, content = null } = key ?? {};
    this.#run(sql, id, state, JSON.stringify(record), priority, bytes, place, at, scope, content);
  }

  update(seq: number, record: JobRecord, standing: Standing): void {
    const { token, place, at, endOrder, owesWebhook, bytes } = standing;
    const sql = `UPDATE jobs SET state = ?, record = ?, bytes = ?, token = ?, place = ?, at = ?, end_order = ?, owes = ?
      WHERE seq = ?`;
    const owes = owesWebhook ? 1 : null;
    this.#run(sql, record.state, JSON.stringify(record), bytes, token, place, at, endOrder, owes, seq);
  }

  updateRecord(seq: number, record: JobRecord): void {
    this.#run('UPDATE jobs SET record = ? WHERE seq = ?', JSON.stringify(record), seq);
  }

  remove(seq: number): void {
    this.#run('DELETE FROM jobs WHERE seq = ?', seq);
  }

  insertCall(id: string, call: StoredCall, { bytes, file }: KeptBytes): void {
    const sql = 'INSERT INTO calls (seq, call, body, file) SELECT seq, ?, ?, ? FROM jobs WHERE id = ?';
    this.#run(sql, JSON.stringify(call), bytes, file, id);
  }

  call(seq: number): StoredCall {
    const { call } = this.#get('SELECT call FROM calls WHERE seq = ?', seq) as { call: string };
    return JSON.parse(call) as StoredCall;
  }

  body(seq: number): KeptBytes {
    return bytesIn(this.#get('SELECT body, file FROM calls WHERE seq = ?', seq)) as KeptBytes;
  }

  insertResult(seq: number, { bytes, file }: KeptBytes): void {
    this.#run('INSERT INTO results (seq, body, file) VALUES (?, ?, ?)', seq, bytes, file);
  }

  result(seq: number): KeptBytes | null {
    return bytesIn(this.#get('SELECT body, file FROM results WHERE seq = ?', seq));
  }

  /** Returns the name of its file, if it had one. */
  removeCall(seq: number): string | null {
    return this.#removeFrom('calls', seq);
  }

  removeResult(seq: number): string | null {
    return this.#removeFrom('results', seq);
  }

  /** Keeps the call itself. Returns the name of the body's file, if it had one. */
  removeBody(seq: number): string | null {
    const { file } = this.body(seq);
    this.#run('UPDATE calls SET body = NULL, file = NULL WHERE seq = ?', seq);
    return file;
  }

  /** The webhook of this job is not owed any more. */
  endWebhook(seq: number, record: JobRecord): void {
    this.#run('UPDATE jobs SET record = ?, owes = NULL WHERE seq = ?', JSON.stringify(record), seq);
  }

  /** No process sends any webhook: the one that did has died. */
  leaveWebhooks(): void {
    this.#run('UPDATE jobs SET owes = 0 WHERE owes = 1');
    this.#run('UPDATE webhooks SET owes = 0 WHERE owes = 1');
  }

  /** Jobs whose webhooks no process sends: this one does now. */
  takeOwing(limit: number): JobRow[] {
    const rows = this.#rows(`${ROW} WHERE owes = 0 ORDER BY seq LIMIT ?`, limit);
    for (const { seq } of rows) this.#run('UPDATE jobs SET owes = 1 WHERE seq = ?', seq);
    return rows;
  }

  insertWebhook({ body, ...webhook }: Webhook): void {
    const sql = 'INSERT INTO webhooks (id, webhook, body, owes) VALUES (?, ?, ?, 1)';
    this.#run(sql, webhook.id, JSON.stringify(webhook), body);
  }

  removeWebhook(id: string): void {
    this.#run('DELETE FROM webhooks WHERE id = ?', id);
  }

  /** Webhooks of apps that no process sends: this one does now. */
  takeWebhooks(limit: number): Webhook[] {
    const sql = 'SELECT seq, webhook, body FROM webhooks WHERE owes = 0 ORDER BY seq LIMIT ?';
    const rows = this.#all(sql, limit) as { seq: number; webhook: string; body: Uint8Array }[];
    for (const { seq } of rows) this.#run('UPDATE webhooks SET owes = 1 WHERE seq = ?', seq);
    return rows.map(({ webhook, body }) => ({ ...(JSON.parse(webhook) as Omit<Webhook, 'body'>), body }));
  }

  /** Writes the version of the tables again. */
  writeAgain(): void {
    this.#database.exec(`PRAGMA user_version = ${VERSION}`);
  }

  /** Files of all bodies and results. */
  files(): Set<string> {
    const sql = `SELECT file FROM calls WHERE file IS NOT NULL
      UNION ALL SELECT file FROM results WHERE file IS NOT NULL`;
    return new Set((this.#all(sql) as { file: string }[]).map(({ file }) => file));
  }

  #removeFrom(table: 'calls' | 'results', seq: number): string | null {
    const row = this.#get(`DELETE FROM ${table} WHERE seq = ? RETURNING file`, seq);
    return (row as { file: string | null } | undefined)?.file ?? null;
  }

  #row(sql: string, ...given: readonly (string | number)[]): JobRow | null {
    const row = this.#get(sql, ...given);
    return row === undefined ? null : jobRow(row as RawRow);
  }

  #rows(sql: string, ...given: readonly (string | number)[]): JobRow[] {
    return (this.#all(sql, ...given) as RawRow[]).map(jobRow);
  }

  #run(sql: string, ...given: readonly Value[]): void {
    this.#prepare(sql).run(...given);
  }

  #get(sql: string, ...given: readonly Value[]): unknown {
    return this.#prepare(sql).get(...given) as unknown;
  }

  #all(sql: string, ...given: readonly Value[]): unknown[] {
    return this.#prepare(sql).all(...given) as unknown[];
  }

  #prepare(sql: string): StatementSyncInstance {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}

type Value = string | number | Uint8Array | null;

interface RawRow extends Omit<JobRow, 'record' | 'keyContent'> {
  readonly record: string;
  readonly key_content: string | null;
}

function jobRow({ seq, record, bytes, token, place, key_content: keyContent }: RawRow): JobRow {
  return { seq, record: JSON.parse(record) as JobRecord, bytes, token, place, keyContent };
}

function bytesIn(row: unknown): KeptBytes | null {
  if (row === undefined) return null;
  const { body, file } = row as { body: Uint8Array | null; file: string | null };
  return { bytes: body, file };
}
