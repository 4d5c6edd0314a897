/** The rows of a book of jobs in a database, and the webhooks of apps. */
import type { StatementSyncInstance } from '@photostructure/sqlite';
import type { Input, JobRow, Rows, Standing } from '../job-book.js';
import {
  placeOf,
  type JobRecord,
  type JobState,
  type JobTarget,
  type ListQuery,
  type NewJob,
  type StoredCall,
  type WaitingPlace,
} from '../job-record.js';
import type { StoreEvent } from '../job-store.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import { WaitingQueues } from '../waiting-jobs.js';
import type { KeptBytes } from './body-files.js';
import { VERSION, type Database } from './job-database.js';

export interface TableRow extends JobRow {
  /** The place at which it waits since it is due; else null. */
  readonly place: string | null;
}

/** All that one transaction has changed for others. */
export interface Effects {
  /** Due jobs that wait, by place. */
  readonly counts: { readonly place: WaitingPlace; readonly by: number }[];
  /** In their order. */
  readonly events: StoreEvent[];
  /** Files that no job needs any more. */
  readonly gone: string[];
}

const ROW = 'SELECT seq, record, bytes, token, place, key_content AS keyContent FROM jobs';

export class JobRows implements Rows<TableRow, KeptBytes, KeptBytes> {
  /** Changes that others are told of once they are committed. */
  effects: Effects = { counts: [], events: [], gone: [] };
  readonly #database: Database;
  readonly #prepared = new Map<string, StatementSyncInstance>();
  readonly #waiting = new WaitingQueues((place) => ({ place, length: 0 }));
  /** The jobs that run, since each has steps to come. Emptied with a transaction that is taken back. */
  readonly #running = new Map<string, TableRow>();
  /** Not taken back with a transaction: ends need an order, and may leave numbers out. */
  #lastEndOrder: number;

  constructor(database: Database) {
    this.#database = database;
    const { last } = this.#get('SELECT max(end_order) AS last FROM jobs') as { last: number | null };
    this.#lastEndOrder = last ?? 0;
    for (const { place, by } of this.countWaiting())
      this.#waiting.change(place, (queue) => (queue.length += by));
  }

  takeEffects(): Effects {
    const { effects } = this;
    this.effects = { counts: [], events: [], gone: [] };
    return effects;
  }

  /** The transaction is taken back, and so are its effects. */
  takeBack(): void {
    this.#running.clear();
    for (const { place, by } of this.takeEffects().counts)
      this.#waiting.change(place, (queue) => (queue.length -= by));
  }

  byId(id: string): TableRow | null {
    return this.#running.get(id) ?? this.#row(`${ROW} WHERE id = ?`, id);
  }

  byKey(scope: string): TableRow | null {
    return this.#row(`${ROW} WHERE key_scope = ?`, scope);
  }

  inState(state: JobState): TableRow[] {
    return this.#rows(`${ROW} WHERE state = ? ORDER BY seq`, state);
  }

  /** Only places with jobs are looked at: most have none. */
  next(target: JobTarget, nowMs: number): TableRow[] {
    const places = new Map(this.#waiting.queuesFor(target).map(({ place }) => [keyOf(place), place.route]));
    const waiting = [...places].flatMap(([place, route]) => {
      // Not bound: SQLite would prepare the statement again at each call, which takes four times as long as the search.
      const limit = target.routes.get(route) ?? 0;
      const sql = `${ROW} WHERE place = ? AND (at IS NULL OR at > ?) ORDER BY priority DESC, seq LIMIT ${limit}`;
      return this.#rows(sql, place, nowMs);
    });
    waiting.sort((a, b) => b.record.priority - a.record.priority || a.seq - b.seq);
    const route = waiting[0]?.record.route ?? '';
    return waiting.filter(({ record }) => record.route === route).slice(0, target.routes.get(route));
  }

  timely(nowMs: number, limit: number): TableRow[] {
    return this.#rows(`${ROW} WHERE at <= ? ORDER BY at, seq LIMIT ?`, nowMs, limit);
  }

  earliestMs(): number {
    const { at } = this.#get('SELECT min(at) AS at FROM jobs WHERE at IS NOT NULL') as { at: number | null };
    return at ?? Infinity;
  }

  oldestEnded(): TableRow | null {
    return this.#row(`${ROW} WHERE end_order IS NOT NULL AND owes IS NULL ORDER BY end_order LIMIT 1`);
  }

  list({ state, from, limit }: ListQuery): TableRow[] {
    const which = state === null ? '' : 'state = ? AND';
    const given = state === null ? [] : [state];
    const sql = `${ROW} WHERE ${which} seq <= ? ORDER BY seq DESC LIMIT ?`;
    return this.#rows(sql, ...given, from ?? Number.MAX_SAFE_INTEGER, limit + 1);
  }

  insert({ record, call, key, body }: NewJob<KeptBytes>, { bytes, isWaiting, at }: Standing): void {
    const { id, state, priority } = record;
    const place = isWaiting ? keyOf(placeOf(record)) : null;
    const sql = `INSERT INTO jobs (id, state, record, priority, bytes, place, at, key_scope, key_content)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    const { scope = null, content = null } = key ?? {};
    const row = [id, state, JSON.stringify(record), priority, bytes, place, at, scope, content];
    const { lastInsertRowid: seq } = this.#run(sql, ...row);
    const { bytes: blob, file } = body;
    this.#run(
      'INSERT INTO calls (seq, call, body, file) VALUES (?, ?, ?, ?)',
      seq,
      JSON.stringify(call),
      blob,
      file,
    );
    this.#moved(record, null, place);
  }

  write(row: TableRow, record: JobRecord, { token, bytes, isWaiting, at, isOwed }: Standing): void {
    const { seq } = row;
    const place = isWaiting ? keyOf(placeOf(record)) : null;
    const order = record.end === null ? null : (this.#lastEndOrder += 1);
    const sql = `UPDATE jobs SET state = ?, record = ?, token = ?, bytes = ?, place = ?, at = ?, end_order = ?, owes = ?
      WHERE seq = ?`;
    const waits = [token, bytes, place, at];
    this.#run(sql, record.state, JSON.stringify(record), ...waits, order, isOwed ? 1 : null, seq);
    if (record.state === 'running') this.#running.set(record.id, { ...row, record, token, place });
    else this.#running.delete(record.id);
    if (isOwed) {
      this.gone(this.input(row).body.file);
      this.#run('UPDATE calls SET body = NULL, file = NULL WHERE seq = ?', seq);
    } else if (record.end !== null) this.#removeFrom('calls', seq);
    this.#moved(record, row.place, place);
  }

  remove({ seq, record, place }: TableRow): void {
    for (const table of ['calls', 'results'] as const) this.#removeFrom(table, seq);
    this.#run('DELETE FROM jobs WHERE seq = ?', seq);
    this.#moved(record, place, null);
  }

  input({ seq }: TableRow): Input<KeptBytes> {
    const { call, ...body } = this.#get(
      'SELECT call, body AS bytes, file FROM calls WHERE seq = ?',
      seq,
    ) as KeptBytes & { call: string };
    return { call: JSON.parse(call) as StoredCall, body };
  }

  keepResult({ seq }: TableRow, { bytes, file }: KeptBytes): void {
    this.#run('INSERT INTO results (seq, body, file) VALUES (?, ?, ?)', seq, bytes, file);
  }

  result({ seq }: TableRow): KeptBytes | null {
    const row = this.#get('SELECT body AS bytes, file FROM results WHERE seq = ?', seq);
    return (row as KeptBytes | undefined) ?? null;
  }

  /** No job needs this file any more. */
  gone(file: string | null): void {
    if (file !== null) this.effects.gone.push(file);
  }

  /** The webhook of this job is not owed any more. */
  endWebhook({ seq }: TableRow, record: JobRecord): void {
    this.#removeFrom('calls', seq);
    this.#run('UPDATE jobs SET record = ?, owes = NULL WHERE seq = ?', JSON.stringify(record), seq);
  }

  /** No process sends any webhook: the one that did has died. */
  leaveWebhooks(): void {
    this.#run('UPDATE jobs SET owes = 0 WHERE owes = 1');
    this.#run('UPDATE webhooks SET owes = 0 WHERE owes = 1');
  }

  /** Jobs whose webhooks no process sends: this one does now. */
  takeOwing(limit: number): TableRow[] {
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

  /** Bytes of all jobs, and of those that may be dropped. */
  countBytes(): { bytes: number; endedBytes: number } {
    const sql = `SELECT coalesce(sum(bytes), 0) AS bytes,
      coalesce(sum(bytes) FILTER (WHERE end_order IS NOT NULL AND owes IS NULL), 0) AS endedBytes FROM jobs`;
    return this.#get(sql) as never;
  }

  /** Due jobs that wait, by place. */
  countWaiting(): Effects['counts'] {
    const sql = `SELECT place, priority, count(*) AS count FROM jobs WHERE place IS NOT NULL
      GROUP BY place, priority`;
    const rows = this.#all(sql) as { place: string; priority: number; count: number }[];
    return rows.map(({ place, priority, count }) => ({ place: placeIn(place, priority), by: count }));
  }

  /** Files of all bodies and results. */
  files(): Set<string> {
    const sql = `SELECT file FROM calls WHERE file IS NOT NULL
      UNION ALL SELECT file FROM results WHERE file IS NOT NULL`;
    return new Set((this.#all(sql) as { file: string }[]).map(({ file }) => file));
  }

  /** A job waits at another place now; null: at none. */
  #moved(record: JobRecord, from: string | null, to: string | null): void {
    if (from === to) return;
    const [place, by] = [placeOf(record), to === null ? -1 : 1];
    this.#waiting.change(place, (queue) => (queue.length += by));
    this.effects.counts.push({ place, by });
  }

  #removeFrom(table: 'calls' | 'results', seq: number): void {
    const row = this.#get(`DELETE FROM ${table} WHERE seq = ? RETURNING file`, seq);
    this.gone((row as { file: string | null } | undefined)?.file ?? null);
  }

  #row(sql: string, ...given: readonly Value[]): TableRow | null {
    const row = this.#get(sql, ...given);
    return row === undefined ? null : tableRow(row as RawRow);
  }

  #rows(sql: string, ...given: readonly Value[]): TableRow[] {
    return (this.#all(sql, ...given) as RawRow[]).map(tableRow);
  }

  #run(sql: string, ...given: readonly Value[]): { lastInsertRowid: number | bigint } {
    return this.#prepare(sql).run(...given);
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

type Value = string | number | bigint | Uint8Array | null;

type RawRow = Omit<TableRow, 'record'> & { record: string };

function tableRow(row: RawRow): TableRow {
  return { ...row, record: JSON.parse(row.record) as JobRecord };
}

/** A place without its priority, as one text. */
function keyOf({ model, version, route }: Omit<WaitingPlace, 'priority'>): string {
  return JSON.stringify([model, version, route]);
}

function placeIn(key: string, priority: number): WaitingPlace {
  const [model, version, route] = JSON.parse(key) as [string, string | null, string];
  return { model, version, route, priority };
}
