/**
 * The steps of a job after it has begun, or while it waits: its outcome, its way back, its end without a worker. Each is the
 * script `move`, which checks the token of the attempt, or, of a job that nobody runs, that it was not fetched since it was read.
 */
import { hasEnded, type JobProgress, type JobRecord, type Outcome } from '../job-record.js';
import type { Deferred } from '../../machine/deferred.js';
import { bytesOfEnded, cancelled, expiresAt, givenBack, lost, settled } from '../job-rules.js';
import type { KeepLimits, Tell } from '../job-store.js';
import type { HeldJob, HeldJobs } from './held-jobs.js';
import { OwedWebhooks } from './owed-webhooks.js';
import type { RedisLink } from './redis-link.js';
import {
  endedRecord,
  LOST,
  nextData,
  readJob,
  type AttemptProgress,
  type JobData,
  type ReadJob,
} from './stored-job.js';
import type { WaitingCounts } from './queues.js';

/** Answer of a script that has fetched jobs: each with its queue, and the number of jobs that wait in each queue. */
export type Fetched = readonly [
  jobs: readonly (readonly [queue: string, id: string, fields: readonly string[]])[],
  left: readonly (readonly [queue: string, due: number])[],
];

/** The fetch of the next jobs in one step with the end of one: of the begin that joins it, if any. */
export interface FetchAhead {
  /** Empty while no begin has joined. */
  args: readonly (string | number)[];
  /** Null if the job has not ended. */
  readonly fetched: Deferred<Fetched | null>;
}

export interface StepParts {
  readonly link: RedisLink;
  readonly held: HeldJobs;
  readonly counts: WaitingCounts;
  readonly webhooks: OwedWebhooks;
  readonly limits: KeepLimits;
  readonly lockMs: number;
  readonly tell: Tell;
}

/** BullMQ's scripts take a body as a whole, and Redis holds up everyone meanwhile. */
export const MAX_BODY_BYTES = 16 * 1024 ** 2;

/** A result is dropped with its job; should that have no end, after so long. */
const SPARE_MS = 24 * 60 * 60_000;

/** A clock that was set back by more is taken as it is. */
const SAME_MS = 1000;

/** Most of an error that dashboards and events have; the record has all of it. */
const MAX_REASON_CHARS = 1000;

/** A job that runs here, by its token, or one that waits, by the number of its fetches. */
interface Movable extends Pick<ReadJob, 'id' | 'queue'> {
  readonly token?: string;
  readonly fetches?: string;
}

/** The rest of a change of a job, beside its next record. */
interface Extras {
  /** It waits again: before all others of its priority, or until it is due. */
  readonly to?: 'front' | 'later';
  /** The body of a result that is to be kept. */
  readonly body?: Buffer | null;
  readonly ahead?: FetchAhead;
}

/** Why a change is not done: not this server's any more, fetched since it was read, or cancelled and must not run again. */
type Refusal = 'cancelled' | 'gone' | 'moved';

export class JobSteps {
  readonly parts: StepParts;
  #lastEndMs = 0;

  constructor(parts: StepParts) {
    this.parts = parts;
  }

  async read(id: string): Promise<ReadJob | null> {
    const { link, limits } = this.parts;
    return readJob(await link.run('read', [id, Date.now(), limits.retentionMs]));
  }

  /** Stores the outcome of an attempt. Null if it is lost, or has ended. `ahead`: fetches the next jobs in the same step. */
  async settle(job: HeldJob, outcome: Outcome, ahead?: FetchAhead): Promise<JobRecord | null> {
    const body = 'error' in outcome || (outcome.body?.length ?? 0) > MAX_BODY_BYTES ? null : outcome.body;
    const next = (): JobRecord => settled(job.record, outcome, Date.now(), body === null);
    try {
      return await this.#leave(job, next, { body, ...(ahead && { ahead }) });
    } catch (error) {
      ahead?.fetched.reject(error);
      throw error;
    } finally {
      ahead?.fetched.resolve(null);
    }
  }

  /** No worker has begun it, or can. One that has ended already, or whose last server has died, does not run again. */
  async giveBack(job: HeldJob, isLoss: boolean): Promise<void> {
    if (hasEnded(job.data.record)) {
      this.parts.held.release(job);
      return this.#putBack(job, job.data);
    }
    if (job.stalls > job.data.stalls) return this.leaveUnrun(job, () => lost(job.record, LOST, Date.now()));
    await this.leaveUnrun(job, () => givenBack(job.record, isLoss, Date.now()), 'front');
  }

  /** A job that was fetched ends, or waits again, without a worker. */
  async leaveUnrun(job: HeldJob, next: () => JobRecord, to: Extras['to'] = 'later'): Promise<void> {
    const { tell } = this.parts;
    const stored = await this.#leave(job, next, { to });
    const { call } = job.data;
    if (stored === null) return;
    if (!hasEnded(stored)) tell('onDue', stored.model);
    else if (call !== null) tell('onEndedUnrun', stored, call);
  }

  /** The attempt is over: the job has ended, or waits again. Null if it is not this server's any more. */
  async #leave(job: HeldJob, next: () => JobRecord, extras: Extras): Promise<JobRecord | null> {
    const { held } = this.parts;
    const wasUnsure = job.isUnsure;
    job.isUnsure = true;
    let stored = await this.#write(job, next(), extras);
    if (stored === 'cancelled') {
      held.cancel(job.id);
      stored = await this.#write(job, next(), extras);
    }
    if (stored === 'gone' && (await held.retake(job))) stored = await this.#write(job, next(), extras);
    if (stored === 'gone' && wasUnsure) stored = await this.#storedBy(job);
    held.release(job);
    return typeof stored === 'string' ? null : this.#changed(stored);
  }

  /** Notes how far a running attempt is; the next report follows. */
  progress(job: HeldJob, progress: JobProgress): void {
    const { link, tell } = this.parts;
    job.record = { ...job.record, progress };
    const report: AttemptProgress = { attempt: job.record.attempts, ...progress };
    link.run('progress', [job.id, job.token, JSON.stringify(report)]).then(
      () => tell('onChanged', job.record),
      () => {},
    );
  }

  /** Cancels a job. Resolves with the record before that, null if it is unknown. */
  async cancel(id: string): Promise<JobRecord | null> {
    for (;;) {
      const job = await this.read(id);
      if (job === null || hasEnded(job.record)) return job?.record ?? null;
      if (job.record.state === 'queued') {
        if (await this.moveWaiting(job, cancelled(job.record, Date.now()))) return job.record;
      } else if ((await this.parts.link.run('cancel', [id])) === 'running') {
        this.parts.held.cancel(id);
        return job.record;
      }
    }
  }

  /**
   * Decides on a job that lies where BullMQ puts those without a lock: its server has died with it. Where one of BullMQ's tools
   * has put it there it goes back.
   */
  async lose(job: ReadJob): Promise<void> {
    if (hasEnded(job.data.record)) return this.#putBack(job, job.data);
    if (job.stalls <= job.data.stalls) {
      await this.#move(job, 'front', job.data, expiryOf(job.data.record));
      return;
    }
    await this.moveWaiting(job, lost(job.record, LOST, Date.now()));
  }

  /** A job that has ended is not run again, whatever a tool of BullMQ does: it goes back. */
  async #putBack(job: Movable, data: JobData): Promise<void> {
    await this.#move(job, 'back', data, data.record.end?.endedAt ?? 0);
  }

  /** Changes a job that nobody runs: it ends, or is tried again. Returns false if it was fetched since it was read. */
  async moveWaiting(job: ReadJob, next: JobRecord): Promise<boolean> {
    const stored = await this.#write(job, next);
    if (typeof stored === 'string') return false;
    const { call } = job.data;
    if (hasEnded(stored) && call !== null) this.parts.tell('onEndedUnrun', stored, call);
    this.#changed(stored);
    return true;
  }

  #changed(record: JobRecord): JobRecord {
    if (record.end?.owesWebhook === true) this.parts.webhooks.note(record.id);
    this.parts.tell('onChanged', record);
    return record;
  }

  /** Returns the record as it is stored. */
  async #write(
    job: Omit<ReadJob, 'fetches'> & Movable,
    next: JobRecord,
    extras: Extras = {},
  ): Promise<JobRecord | Refusal> {
    const { to = 'later', body, ahead } = extras;
    const data = nextData(job.data, next, job.stalls, job.token ?? '');
    if (!hasEnded(next)) {
      const [said] = await this.#move(job, to, data, to === 'front' ? expiryOf(next) : next.dueAt);
      return said === 'done' ? next : said;
    }
    const at = this.#endAt(next.end.endedAt);
    const [said, isKept, can] = await this.#move(job, 'end', data, at, body, ahead);
    return said === 'done' ? endedRecord(next, isKept === 0, next.end.owesWebhook, can === '1') : said;
  }

  /** `at`: when it expires, is due, or has ended. Answers what happened, whether its result is kept, and whether it was cancelled. */
  async #move(
    { id, queue, token = '', fetches = '' }: Movable,
    to: 'front' | 'later' | 'back' | 'end',
    data: JobData,
    at: number | '',
    body: Buffer | null = null,
    ahead?: FetchAhead,
  ): Promise<[said: 'done' | Refusal, isKept: number, can: string]> {
    const { link, limits, counts } = this.parts;
    const { state, end } = data.record;
    const [said, isKept, can, fetched] = (await link.run('move', [
      ...[id, token, fetches, to, JSON.stringify(data), at, state, textOf(data.record)],
      end?.owesWebhook === true && to === 'end' ? OwedWebhooks.untilMs() : '',
      body === null ? '' : bytesOfEnded(body.length),
      ...[limits.maxBytes, limits.retentionMs + SPARE_MS, body ?? '', link.id],
      ...(ahead?.args ?? []),
    ])) as [said: 'done' | 'was due' | Refusal, isKept: number, can: string, fetched?: Fetched | null];
    if (said === 'was due') counts.add(queue, -1);
    else if (said === 'done' && to === 'front') counts.add(queue, 1);
    if (fetched !== undefined && fetched !== null) {
      counts.note(fetched[1]);
      ahead?.fetched.resolve(fetched);
    }
    return [said === 'was due' ? 'done' : said, isKept, can];
  }

  /** Whether an answer of Redis was lost that said that the outcome is stored: then the record. */
  async #storedBy({ id, token }: HeldJob): Promise<JobRecord | 'gone'> {
    const found = await this.read(id);
    return found?.data.by === token ? found.record : 'gone';
  }

  /** Ends of one millisecond keep their order: those that ended first are dropped first. */
  #endAt(endedAtMs: number): number {
    const behindMs = this.#lastEndMs - endedAtMs;
    const isSame = behindMs >= 0 && behindMs < SAME_MS;
    return (this.#lastEndMs = isSame ? this.#lastEndMs + 0.001 : endedAtMs);
  }
}

/** Describes an end for dashboards: the facts of the answer as JSON, or the reason. */
function textOf({ end }: JobRecord): string {
  if (end === null) return '';
  const { result, error } = end;
  if (result === null) return (error?.message ?? '').slice(0, MAX_REASON_CHARS);
  const { status, contentType } = result.head;
  return JSON.stringify({ status, contentType, bytes: result.bytes });
}

/** When a job expires; empty if it does not. */
function expiryOf(record: JobRecord): number | '' {
  const atMs = expiresAt(record);
  return atMs === Infinity ? '' : atMs;
}
