/** The records of jobs in Redis: reads them, and writes a new one only in place of the one that was read. */
import { bytesOfNew, LEAST_JOB_BYTES } from '../job-bytes.js';
import {
  hasEnded,
  placeOf,
  type Acceptance,
  type JobPage,
  type JobProgress,
  type JobRecord,
  type ListQuery,
  type NewJob,
  type StoredCall,
} from '../job-record.js';
import { expiresAt } from '../job-rules.js';
import { nameOf, placeText } from './line.js';
import type { RedisLink } from './redis-link.js';
import { KEYS } from './scripts.js';

/** A record as it was read. */
export interface Stored {
  readonly record: JobRecord;
  readonly revision: string;
  /** The mark of its present attempt; empty while it waits, and once it has ended. */
  readonly token: string;
  /** The mark of the last attempt that was settled; empty if there is none. */
  readonly settledToken: string;
  /** The name of its line. */
  readonly line: string;
  /** Whether it was seen to be due; it stays so if the clock is set back. */
  readonly isDue: boolean;
}

export interface Change {
  /** The mark; empty if the job is not running. */
  readonly token: string;
  /** The mark whose outcome this is. */
  readonly settledToken?: string;
  /** BullMQ's lock, which must have this value in the same step. */
  readonly lock?: { readonly key: string; readonly value: string };
  /** The answer's body, if there is room for it; else `ifDropped` is the record. */
  readonly result?: { readonly body: Buffer; readonly ifDropped: JobRecord };
  /** Its webhook is not owed any more. */
  readonly isWebhookEnd?: boolean;
  /** Other fronts are told that the job was cancelled while it runs. */
  readonly isCancel?: boolean;
}

/** `moved`: the record is another one by now. `unlocked`: BullMQ's lock is another front's. */
export type Changed =
  { readonly is: 'done'; readonly record: JobRecord } | { readonly is: 'gone' | 'moved' | 'unlocked' };

/** Hears what scripts tell this front. */
export interface RecordsListener {
  /** More jobs may wait at a place. */
  onCount(place: string, count: number, version: number): void;
}

export class JobRecords {
  readonly #link: RedisLink;
  readonly #front: string;
  readonly #maxBytes: number;
  readonly #listener: RecordsListener;

  /** `front`: the name of this one in news. `maxBytes`: of all bodies and results. */
  constructor(link: RedisLink, front: string, maxBytes: number, listener: RecordsListener) {
    this.#link = link;
    this.#front = front;
    this.#maxBytes = maxBytes;
    this.#listener = listener;
  }

  async accept({ record, call, body, key }: NewJob, nowMs: number): Promise<Acceptance> {
    const place = placeOf(record);
    const isDue = record.dueAt <= nowMs;
    const atMs = isDue ? expiresAt(record) : record.dueAt;
    const bytes = String(bytesOfNew(call));
    const [is, text, progress, counts] = (await this.#link.run('accept', [
      this.#front,
      record.id,
      JSON.stringify(record),
      JSON.stringify(call),
      body.pieces.length === 1 ? (body.pieces[0] as Buffer) : Buffer.concat(body.pieces),
      key?.scope ?? '',
      key?.content ?? '',
      bytes,
      String(this.#maxBytes),
      placeText(place),
      nameOf(place),
      isDue ? 'due' : '',
      String(atMs),
      String(nowMs),
    ])) as ['accepted' | 'known' | 'conflict' | 'full', string, string, string[]?];
    if (is === 'accepted') this.#count(counts);
    if (is === 'accepted' || is === 'known') return { is, record: recordOf(text, progress) };
    return { is };
  }

  async read(id: string): Promise<Stored | null> {
    const fields = ['rec', 'prog', 'rev', 'tok', 'lt', 'line', 'q'];
    const reply = await this.#link.use(() => this.#link.commands.hmGet(KEYS + 'job:' + id, fields));
    const [text, progress, revision, token, settledToken, line, due] = reply;
    if (typeof text !== 'string') return null;
    return {
      record: recordOf(text, progress ?? ''),
      revision: revision ?? '',
      token: token ?? '',
      settledToken: settledToken ?? '',
      line: line ?? '',
      isDue: due === 'due',
    };
  }

  /** Null once the job has ended. */
  async readCall(id: string): Promise<StoredCall | null> {
    const text = await this.#link.use(() => this.#link.commands.hGet(KEYS + 'job:' + id, 'call'));
    return typeof text === 'string' ? (JSON.parse(text) as StoredCall) : null;
  }

  readBody(id: string): Promise<Buffer | null> {
    return this.#link.bytes(KEYS + 'job:' + id, 'body');
  }

  readResult(id: string): Promise<Buffer | null> {
    return this.#link.bytes(KEYS + 'job:' + id, 'res');
  }

  async change(was: Stored, record: JobRecord, nowMs: number, change: Change): Promise<Changed> {
    const { token, settledToken, lock, result, isWebhookEnd, isCancel } = change;
    const isDue = record.state === 'queued' && record.dueAt <= nowMs;
    const atMs = record.state !== 'queued' ? Infinity : isDue ? expiresAt(record) : record.dueAt;
    const facts = {
      st: record.state,
      att: String(record.attempts),
      can: record.isCancelled ? '1' : '0',
      tok: token,
      q: isDue ? 'due' : '',
      now: String(nowMs),
      leastBytes: LEAST_JOB_BYTES,
      maxBytes: this.#maxBytes,
      ...(settledToken === undefined ? {} : { lt: settledToken }),
      ...(atMs === Infinity ? {} : { at: String(atMs) }),
      ...(hasEnded(record) ? { endMs: String(record.end.endedAt), owesWebhook: record.end.owesWebhook } : {}),
      ...(isWebhookEnd === true ? { webhookEnded: true } : {}),
      ...(lock === undefined ? {} : { lock: lock.key, lockToken: lock.value }),
      ...(result === undefined ? {} : { hasResult: true }),
      ...(isCancel === true ? { isCancel } : {}),
    };
    const [is, text, , counts] = (await this.#link.run('change', [
      this.#front,
      record.id,
      was.revision,
      JSON.stringify(facts),
      JSON.stringify(record),
      result === undefined ? '' : JSON.stringify(result.ifDropped),
      result?.body ?? '',
    ])) as [Changed['is'], string, string, string[]?];
    if (is !== 'done') return { is };
    this.#count(counts);
    return { is, record: recordOf(text, '') };
  }

  /** Resolves with the record if the mark is still there. */
  async progress(id: string, token: string, progress: JobProgress): Promise<JobRecord | null> {
    const text = JSON.stringify(progress);
    const [record] = (await this.#link.run('progress', [this.#front, id, token, text])) as string[];
    return record === undefined ? null : recordOf(record, text);
  }

  async withdraw(id: string): Promise<void> {
    this.#count((await this.#link.run('withdraw', [this.#front, id])) as string[]);
  }

  async list({ state, limit, from }: ListQuery): Promise<JobPage> {
    const args = [state ?? '', String(limit + 1), from === null ? '' : String(from)];
    const found = (await this.#link.run('list', args)) as string[];
    const rows: { record: JobRecord; order: number }[] = [];
    for (let i = 0; i < found.length; i += 3)
      rows.push({
        record: recordOf(found[i] as string, found[i + 1] as string),
        order: Number(found[i + 2]),
      });
    return { records: rows.slice(0, limit).map(({ record }) => record), next: rows[limit]?.order ?? null };
  }

  /** The records of jobs that ended after one end, up to another. */
  async endedBetween(after: number, upTo: number): Promise<JobRecord[]> {
    const texts = (await this.#link.run('since', [String(after), String(upTo)])) as string[];
    return texts.map((text) => recordOf(text, ''));
  }

  #count(counts: readonly string[] = []): void {
    for (let i = 0; i < counts.length; i += 3)
      this.#listener.onCount(counts[i] as string, Number(counts[i + 1]), Number(counts[i + 2]));
  }
}

/** Progress is kept beside the record, because it is written less safely. */
export function recordOf(text: string, progress: string): JobRecord {
  const record = JSON.parse(text) as JobRecord;
  return progress === '' ? record : { ...record, progress: JSON.parse(progress) as JobProgress };
}
