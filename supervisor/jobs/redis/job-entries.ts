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
  /** Entries that come, and those that go. */
  readonly #coming = new Set<Promise<void>>();
  readonly #going = new Set<Promise<void>>();

  constructor(link: RedisLink, lines: BullLines, records: JobRecords, front: string) {
    this.#link = link;
    this.#lines = lines;
    this.#records = records;
    this.#front = front;
  }

  /** Adds the entry of a due job, and wakes the other fronts. */
  add(record: JobRecord): void {
    this.#come(async () => {
      await this.#lines.add(nameOf(placeOf(record)), record.id, record.priority);
      return record;
    });
  }

  /** Adds the entry of a job if it is due and has none. */
  addMissing(id: string, nowMs: number): void {
    this.#come(async () => {
      const found = await this.#records.read(id);
      if (found === null || found.record.state !== 'queued' || found.record.dueAt > nowMs) return null;
      await this.#lines.add(found.line, id, found.record.priority);
      return found.record;
    });
  }

  /** Puts back the entry of a job that waits again. */
  putBack(record: JobRecord, entry: Entry): void {
    this.#come(async () => {
      if (!(await this.#lines.putBack(entry))) await this.#lines.add(entry.line, entry.id, record.priority);
      return record;
    });
  }

  /** Drops an entry that this front has fetched. */
  release(entry: Entry): void {
    track(this.#going, this.#lines.release(entry));
  }

  /** Removes the entry of a job that was not running here. */
  remove(line: string, id: string): void {
    track(this.#going, this.#lines.remove(line, id));
  }

  /** Resolves once the entries are there that come now. */
  async come(): Promise<void> {
    await Promise.all(this.#coming);
  }

  /** Resolves once nothing is under way. */
  async settled(): Promise<void> {
    while (this.#coming.size + this.#going.size > 0) await Promise.all([...this.#coming, ...this.#going]);
  }

  /** `add` resolves with the record whose entry is there, or null if none must be. */
  #come(add: () => Promise<JobRecord | null>): void {
    const adding = add();
    track(this.#coming, adding);
    const tell = async (): Promise<void> => {
      const record = await adding;
      if (record !== null) await this.#link.run('added', [this.#front, record.id, record.model]);
    };
    track(this.#going, tell());
  }
}

function track(all: Set<Promise<void>>, work: Promise<unknown>): void {
  const done = work
    .then(
      () => {},
      () => {}, // the sweep finds it; the next call tells that Redis is away
    )
    .finally(() => all.delete(done));
  all.add(done);
}
