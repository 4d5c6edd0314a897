/**
 * Brings BullMQ's entries into line with the records: a job has an entry while it is due and queued. This is done beside the
 * calls of the store and may fail: a sweep finds what is missing, and a front that fetches an entry too many drops it.
 */
import type { JobRecord } from '../job-record.js';
import type { BullLines, Entry } from './bull-lines.js';
import type { JobRecords } from './job-records.js';
import { nameOf } from './line.js';
import { placeOf } from '../job-record.js';
import type { RedisLink } from './redis-link.js';

export class JobEntries {
  readonly #link: RedisLink;
  readonly #lines: BullLines;
  readonly #records: JobRecords;
  readonly #front: string;
  readonly #underWay = new Set<Promise<void>>();

  constructor(link: RedisLink, lines: BullLines, records: JobRecords, front: string) {
    this.#link = link;
    this.#lines = lines;
    this.#records = records;
    this.#front = front;
  }

  /** Adds the entry of a due job, and wakes the other fronts. */
  add(record: JobRecord): void {
    this.#start(async () => {
      await this.#lines.add(nameOf(placeOf(record)), record.id, record.priority);
      await this.#tell(record);
    });
  }

  /** Adds the entry of a job if it is due and has none. */
  addMissing(id: string, nowMs: number): void {
    this.#start(async () => {
      const found = await this.#records.read(id);
      if (found === null || found.record.state !== 'queued' || found.record.dueAt > nowMs) return;
      await this.#lines.add(found.line, id, found.record.priority);
      await this.#tell(found.record);
    });
  }

  /** Puts back the entry of a job that waits again. */
  putBack(record: JobRecord, entry: Entry): void {
    this.#start(async () => {
      if (!(await this.#lines.putBack(entry))) await this.#lines.add(entry.line, entry.id, record.priority);
      await this.#tell(record);
    });
  }

  /** Drops an entry that this front has fetched. */
  release(entry: Entry): void {
    this.#start(() => this.#lines.release(entry));
  }

  /** Removes the entry of a job that was not running here. */
  remove(line: string, id: string): void {
    this.#start(() => this.#lines.remove(line, id));
  }

  /** Resolves once all that was begun is done, or has failed. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #tell({ id, model }: JobRecord): Promise<void> {
    await this.#link.run('added', [this.#front, id, model]);
  }

  #start(work: () => Promise<void>): void {
    const done = work()
      .catch(() => {}) // the sweep finds it; the next call tells that Redis is away
      .finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }
}
