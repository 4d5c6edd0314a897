/**
 * The work that one front does for all of them, the one with the lease: jobs become due, expire, are dropped; entries that
 * BullMQ lacks are added; a job whose front lets its lock expire is lost, or tried again. Two fronts may do it at once, since
 * each transition is one step.
 */
import { ServeError } from '../../../protocol/errors.js';
import { keptError, type JobRecord } from '../job-record.js';
import { expired, expiresAt, settled } from '../job-rules.js';
import type { JobEntries } from './job-entries.js';
import type { JobMoves, Moved, Step } from './job-moves.js';
import type { Stored } from './job-records.js';
import type { RedisLink } from './redis-link.js';

export interface SweepParts {
  readonly link: RedisLink;
  readonly front: string;
  readonly moves: JobMoves;
  readonly entries: JobEntries;
  readonly retentionMs: number;
  /** A job may be due for a worker of this front. */
  readonly onDue: (record: JobRecord) => void;
}

/** The front that stored a job adds its entry at once; after this time it has failed. */
const MISSING_MS = 1000;

/**
 * A lock that has expired is looked at again after this time: after a restart of Redis every front sets the locks of its jobs
 * again first.
 */
const SUSPECT_MS = 2000;

/** A search costs Redis commands by the number of jobs, a sweep only by what is due: under load sweeps are many. */
const SEARCH_MS = 1000;

/** A job without a lock. */
interface Suspect {
  readonly token: string;
  readonly sinceMs: number;
}

export class JobSweep {
  readonly #parts: SweepParts;
  readonly #suspects = new Map<string, Suspect>();
  /** Ids that were seen since the search began anew. */
  readonly #seen = new Set<string>();
  #searchedAtMs = -Infinity;
  #fromRunning = START;
  #fromQueued = START;

  constructor(parts: SweepParts) {
    this.#parts = parts;
  }

  /** The connection is new: what was seen before it counts no more. */
  forget(): void {
    this.#suspects.clear();
    this.#searchedAtMs = -Infinity;
  }

  /** Resolves with the time at which something is due next; Infinity if nothing is. */
  async run(nowMs: number): Promise<number> {
    const { link, front, retentionMs } = this.#parts;
    const times = [nowMs, nowMs - retentionMs, nowMs - MISSING_MS].map(String);
    const reply = await link.run('sweep', [front, ...times]);
    const [due, next, missing, isMore] = reply as [string[], string, string[], number];
    await Promise.all(due.map((id) => this.#onTime(id)));
    this.#addMissing(missing, nowMs);
    if (performance.now() - this.#searchedAtMs >= SEARCH_MS) await this.#search(nowMs);
    if (isMore === 1) return nowMs;
    return next === '' ? Infinity : Number(next);
  }

  /** Looks at some running and some queued jobs, in turn, for locks and entries that are not there. */
  async #search(nowMs: number): Promise<void> {
    this.#searchedAtMs = performance.now();
    const reply = await this.#parts.link.run('search', [this.#fromRunning, this.#fromQueued]);
    const [stray, missing, fromRunning, fromQueued] = reply as [string[], string[], string, string];
    this.#fromRunning = fromRunning;
    this.#fromQueued = fromQueued;
    await Promise.all(this.#lostOf(stray).map((one) => this.#lose(...one)));
    this.#addMissing(missing, nowMs);
  }

  #addMissing(ids: readonly string[], nowMs: number): void {
    for (const id of ids) this.#parts.entries.addMissing(id, nowMs);
  }

  async #onTime(id: string): Promise<void> {
    const { moves, entries, onDue } = this.#parts;
    const moved = await moves.move(id, nextOnTime);
    if (moved === null) return;
    if (moved.record.state !== 'queued') entries.remove(moved.was.line, id);
    else {
      onDue(moved.record);
      entries.add(moved.record);
    }
  }

  /** Selects the jobs that have been without a lock for some time. */
  #lostOf(stray: readonly string[]): [id: string, token: string][] {
    const nowMs = performance.now();
    const lost: [string, string][] = [];
    for (let i = 0; i < stray.length; i += 2) {
      const [id, token] = [stray[i] as string, stray[i + 1] as string];
      const known = this.#suspects.get(id);
      const suspect = known?.token === token ? known : { token, sinceMs: nowMs };
      this.#suspects.set(id, suspect);
      if (nowMs - suspect.sinceMs >= SUSPECT_MS) lost.push([id, token]);
      else this.#seen.add(id);
    }
    if (this.#fromRunning === START) this.#endRound();
    return lost;
  }

  /** All running jobs were looked at: those that were not seen have locks, or have ended. */
  #endRound(): void {
    for (const id of [...this.#suspects.keys()]) if (!this.#seen.has(id)) this.#suspects.delete(id);
    this.#seen.clear();
  }

  async #lose(id: string, token: string): Promise<Moved | null> {
    const moved = await this.#parts.moves.move(id, (was, nowMs) =>
      was.token === token ? lost(was, nowMs) : null,
    );
    if (moved !== null) this.#parts.entries.remove(moved.was.line, id);
    return moved;
  }
}

/** The score at which a search begins anew. */
const START = '-inf';

function nextOnTime({ record }: Stored, nowMs: number): Step | null {
  if (record.state !== 'queued') return null;
  if (expiresAt(record) <= nowMs) return { record: expired(record, nowMs), token: '', isUnrun: true };
  return record.dueAt <= nowMs ? { record, token: '' } : null;
}

function lost({ record }: Stored, nowMs: number): Step {
  const queueMs = (record.begunAt ?? nowMs) - record.createdAt;
  return {
    record: settled(record, { error: LOST, runMs: 0, queueMs }, nowMs, true),
    token: '',
    isUnrun: true,
  };
}

const LOST = keptError(
  new ServeError(
    'SERVE_WORKER_LOST',
    'The server that ran the job died, froze, or lost its connection to Redis.',
  ),
);
