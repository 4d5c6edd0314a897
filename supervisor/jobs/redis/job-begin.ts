/**
 * The fence: begins jobs so that none begins twice.
 *
 * 1. The next entries of the first line are fetched, each with a token of its own: BullMQ locks them for this front.
 * 2. One script checks that the lock is still this front's and that the record is the one that was read (neither begun,
 *    cancelled nor expired), and sets the mark. From then on every outcome must have that mark.
 * 3. If more than half a lock has passed since the fetch, by the monotonic or the calendar clock, the jobs are given back:
 *    this process or its machine was frozen, and the mark may be another front's soon.
 *
 * A begin that fails half-way is taken back: what it may have marked is given back as soon as Redis answers.
 */
import { hasEnded, type BegunJob, type JobTarget, type StoredCall } from '../job-record.js';
import { begun, expired, expiresAt } from '../job-rules.js';
import type { BullLines, Entry } from './bull-lines.js';
import type { HeldJobs } from './held-jobs.js';
import type { JobEntries } from './job-entries.js';
import type { JobMoves, Moved, Step } from './job-moves.js';
import type { JobRecords, Stored } from './job-records.js';
import type { KnownPlaces } from './known-places.js';
import { baseOf, lockOf, nameOf, takes, type Line } from './line.js';
import type { RedisLink } from './redis-link.js';

export interface BeginParts {
  readonly link: RedisLink;
  readonly lines: BullLines;
  readonly records: JobRecords;
  readonly moves: JobMoves;
  readonly entries: JobEntries;
  readonly held: HeldJobs;
  readonly known: KnownPlaces;
  readonly lockMs: number;
  /** Gives a job back as soon as Redis answers. */
  readonly takeBack: (entry: Entry, token: string) => void;
}

export class JobBegin {
  readonly #parts: BeginParts;

  constructor(parts: BeginParts) {
    this.#parts = parts;
  }

  async run(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    const fetchedAt = new Moment();
    const pull = new Pull(this.#parts, target, token);
    try {
      await pull.run();
    } catch (error) {
      pull.undo();
      throw error;
    }
    if (fetchedAt.isPast(this.#parts.lockMs / 2)) {
      pull.undo();
      return [];
    }
    return pull.begun;
  }
}

/** One begin. */
class Pull {
  readonly begun: BegunJob[] = [];
  readonly #parts: BeginParts;
  readonly #target: JobTarget;
  readonly #token: string;
  readonly #entries: Entry[] = [];
  /** Lines in which there was nothing. */
  readonly #empty = new Set<string>();
  #fetches = 0;

  constructor(parts: BeginParts, target: JobTarget, token: string) {
    this.#parts = parts;
    this.#target = target;
    this.#token = token;
  }

  async run(): Promise<void> {
    await this.#parts.entries.come(); // an entry of this front may be on its way
    for (let route: string | null = null; ;) {
      const { line, isOnly } = await this.#nextLine(route);
      if (line === null) return;
      const free = (this.#target.routes.get(line.route) ?? 0) - this.begun.length;
      if (free <= 0) return;
      await this.#fetch(nameOf(line), isOnly ? free : 1);
      if (this.begun.length > 0) route = line.route;
    }
  }

  /** Gives back what has begun, and what may have. */
  undo(): void {
    for (const entry of this.#entries) this.#parts.takeBack(entry, this.#token);
  }

  /** The line with the first job, of one route if some have begun. */
  async #nextLine(route: string | null): Promise<{ line: Line | null; isOnly: boolean }> {
    const lines = new Map<string, Line>();
    for (const place of this.#parts.known.places()) {
      if (!takes(this.#target, place) || (route !== null && place.route !== route)) continue;
      const name = nameOf(place);
      if (!this.#empty.has(name)) lines.set(name, place);
    }
    const [first] = lines.values();
    if (first === undefined || lines.size === 1) return { line: first ?? null, isOnly: true };
    const best = await this.#parts.link.run('heads', [...lines.keys()].map(baseOf));
    return { line: [...lines.values()][Number(best) - 1] ?? null, isOnly: false };
  }

  async #fetch(line: string, most: number): Promise<void> {
    const tokens = Array.from({ length: most }, () => `${this.#token}.${(this.#fetches += 1)}`);
    const entries = await this.#parts.lines.fetch(line, tokens);
    if (entries.length < most) this.#empty.add(line);
    this.#entries.push(...entries);
    const begun = await Promise.all(entries.map((entry) => this.#mark(entry)));
    this.begun.push(...begun.filter((one) => one !== null));
  }

  /** Null if the job is not to begin. */
  async #mark(entry: Entry): Promise<BegunJob | null> {
    const { records, moves, entries, held } = this.#parts;
    const [moved, call, body] = await Promise.all([
      moves.move(entry.id, (was, nowMs) => this.#step(entry, was, nowMs)),
      records.readCall(entry.id),
      records.readBody(entry.id),
    ]);
    if (moved === null || hasEnded(moved.record)) {
      this.#forget(entry);
      entries.release(entry);
      return null;
    }
    held.add(entry, this.#token);
    return begunJob(moved, call, body);
  }

  #step({ line, id, lockToken }: Entry, { record, isDue }: Stored, nowMs: number): Step | null {
    if (record.state !== 'queued') return null; // begun: its front sets the lock again, or it is lost soon
    const lock = { key: lockOf(line, id), value: lockToken };
    if (expiresAt(record) <= nowMs) return { record: expired(record, nowMs), token: '', isUnrun: true };
    if (record.dueAt > nowMs && !isDue) return null; // one that was due stays so, if the clock was set back
    return { record: begun(record, this.#target.version, nowMs), token: this.#token, lock };
  }

  #forget(entry: Entry): void {
    const at = this.#entries.indexOf(entry);
    if (at >= 0) this.#entries.splice(at, 1);
  }
}

function begunJob({ record }: Moved, call: StoredCall | null, body: Buffer | null): BegunJob {
  if (call === null || body === null) throw new Error(`Redis has no call of the job ${record.id}`);
  return { record, call, pieces: [body] };
}

/** A moment on both clocks: the monotonic one stands still while the machine is suspended, the other one may be set. */
class Moment {
  readonly #monotonicMs = performance.now();
  readonly #calendarMs = Date.now();

  isPast(limitMs: number): boolean {
    return performance.now() - this.#monotonicMs > limitMs || Date.now() - this.#calendarMs > limitMs;
  }
}
