/**
 * The steps of a job after it has begun, or while it waits: its outcome, its way back, its end without a worker. Each is one
 * script of BullMQ, which checks the token of the attempt, or `move`, for a job that nobody runs.
 */
import { hasEnded, type JobRecord, type KeptError, type Outcome } from '../job-record.js';
import type { Deferred } from '../../machine/deferred.js';
import { bytesOfEnded } from '../job-bytes.js';
import { cancelled, expiresAt, givenBack, settled } from '../job-rules.js';
import type { JobStoreListener, KeepLimits } from '../job-store.js';
import type { BullEnd, BullQueues, FetchedJob } from './bull-queue.js';
import type { HeldJob, HeldJobs } from './held-jobs.js';
import { OwedWebhooks } from './owed-webhooks.js';
import { PREFIX } from './queue-name.js';
import type { RedisLink } from './redis-link.js';
import { endedRecord, LOST, nextData, readJob, type ReadJob } from './stored-job.js';
import type { WaitingCounts } from './waiting-counts.js';

/** The begin of the next job, which the end of one before fetches in the same step. */
export interface FetchAhead {
  readonly worker: string;
  /** The job, with the lock of the one before; null if none waits. */
  readonly fetched: Deferred<FetchedJob | null>;
}

export interface StepParts {
  readonly link: RedisLink;
  readonly queues: BullQueues;
  readonly held: HeldJobs;
  readonly counts: WaitingCounts;
  readonly webhooks: OwedWebhooks;
  readonly limits: KeepLimits;
  readonly listener: () => JobStoreListener;
}

/** BullMQ's scripts take a body as a whole, and Redis holds up everyone meanwhile. */
export const MAX_BODY_BYTES = 16 * 1024 ** 2;

/** A result is dropped with its job; should that have no end, after so long. */
const SPARE_MS = 24 * 60 * 60_000;

/** A clock that was set back by more is taken as it is. */
const SAME_MS = 1000;

/** Most of an error that dashboards and events have; the record has all of it. */
const MAX_REASON_CHARS = 1000;

export class JobSteps {
  readonly #parts: StepParts;
  #lastEndMs = 0;

  constructor(parts: StepParts) {
    this.#parts = parts;
  }

  async read(id: string): Promise<ReadJob | null> {
    const { link, limits } = this.#parts;
    return readJob(await link.run('read', [id, String(Date.now()), String(limits.retentionMs)]));
  }

  /** Stores the outcome of an attempt. Null if it is lost, or has ended. `ahead`: fetches the next job in the same step. */
  async settle(job: HeldJob, outcome: Outcome, ahead: FetchAhead | null): Promise<JobRecord | null> {
    const body = 'error' in outcome || (outcome.body?.length ?? 0) > MAX_BODY_BYTES ? null : outcome.body;
    try {
      const next = settled(job.record, outcome, Date.now(), body === null);
      return await this.end(job, next, body, ahead);
    } catch (error) {
      ahead?.fetched.reject(error);
      throw error;
    } finally {
      ahead?.fetched.resolve(null);
    }
  }

  /** The attempt is over: the job has ended, or is tried again. Null if it is not this server's any more. */
  async end(
    job: HeldJob,
    next: JobRecord,
    body: Buffer | null,
    ahead: FetchAhead | null = null,
  ): Promise<JobRecord | null> {
    const { held } = this.#parts;
    const wasUnsure = job.isUnsure;
    job.isUnsure = true;
    let stored = await this.#store(job, next, body, ahead);
    if (stored === null && (await held.retake(job))) stored = await this.#store(job, next, body, null);
    if (stored === null && wasUnsure) stored = await this.#storedBy(job);
    held.release(job);
    if (stored === null) return null;
    if (hasEnded(stored) && stored.end.owesWebhook) this.#parts.webhooks.note(job.id);
    this.#parts.listener().onChanged(stored);
    return stored;
  }

  /** A job that was fetched ends, or is lost, without a worker. */
  async endUnrun(job: HeldJob, next: JobRecord): Promise<void> {
    const ended = await this.end(job, next, null);
    const { call } = job.data;
    if (ended !== null && hasEnded(ended) && call !== null) this.#parts.listener().onEndedUnrun(ended, call);
  }

  /** No worker has begun it, or can. */
  async giveBack(job: HeldJob, isLoss: boolean): Promise<void> {
    const { link, held, counts, listener } = this.#parts;
    for (let hasRetaken = false; ;) {
      const next = givenBack(job.record, isLoss, Date.now());
      if (hasEnded(next)) return this.endUnrun(job, next);
      const data = JSON.stringify(nextData(job.data, next, job.stalls, job.token));
      counts.expect(job.queue, job.id);
      const said = await link.run('move', [job.id, job.lock, '', 'front', data, '', '', expiryOf(next), '']);
      if (said === 'cancelled') held.cancel(job.id);
      else if (said === 'gone' && !hasRetaken && (await held.retake(job))) hasRetaken = true;
      else {
        held.release(job);
        if (said !== 'done') return;
        counts.change(job.queue, 1);
        listener().onChanged(next);
        return listener().onDue(next.model);
      }
    }
  }

  /** Cancels a job. Resolves with the record before that, null if it is unknown. */
  async cancel(id: string): Promise<JobRecord | null> {
    for (;;) {
      const job = await this.read(id);
      if (job === null || hasEnded(job.record)) return job?.record ?? null;
      if (job.record.state === 'queued') {
        if (await this.moveWaiting(job, cancelled(job.record, Date.now()))) return job.record;
      } else if ((await this.#parts.link.run('cancel', [id])) === 'running') {
        this.#parts.held.cancel(id);
        return job.record;
      }
    }
  }

  /**
   * Decides on a job that lies where BullMQ puts those without a lock: its server has died with it. Where one of BullMQ's tools
   * has put it there it goes back.
   */
  async lose(job: ReadJob): Promise<void> {
    const { createdAt, begunAt } = job.record;
    if (hasEnded(job.data.record)) return this.putBack(job, '');
    if (job.stalls <= job.data.stalls) return this.#toFront(job);
    const outcome = { error: LOST, runMs: 0, queueMs: (begunAt ?? createdAt) - createdAt };
    await this.moveWaiting(job, settled(job.record, outcome, Date.now(), true));
  }

  /** A job that has ended is not run again, whatever a tool of BullMQ does: it goes back. `lock`: of a fetch, or empty. */
  async putBack(job: Pick<ReadJob, 'id' | 'data' | 'fetches'>, lock: string): Promise<void> {
    const { id, data, fetches } = job;
    const { state, end } = data.record;
    const at = String(end?.endedAt ?? 0);
    await this.#parts.link.run('move', [id, lock, fetches, 'back', JSON.stringify(data), state, '', at, '']);
  }

  async #toFront({ id, queue, data, fetches }: ReadJob): Promise<void> {
    const { link, counts } = this.#parts;
    counts.expect(queue, id);
    await link.run('move', [
      id,
      '',
      fetches,
      'front',
      JSON.stringify(data),
      '',
      '',
      expiryOf(data.record),
      '',
    ]);
  }

  /** Changes a job that nobody runs: it ends, or is tried again. Returns false if it was fetched since it was read. */
  async moveWaiting({ id, queue, data, fetches, stalls }: ReadJob, next: JobRecord): Promise<boolean> {
    const { link, counts, webhooks, listener } = this.#parts;
    const isOver = hasEnded(next);
    const owes = isOver && next.end.owesWebhook;
    const said = await link.run('move', [
      id,
      '',
      fetches,
      isOver ? 'end' : 'later',
      JSON.stringify(nextData(data, next, stalls, '')),
      next.state,
      isOver ? reasonOf(next.end.error) : '',
      String(isOver ? this.#endAt(next.end.endedAt) : next.dueAt),
      owes ? OwedWebhooks.untilMs() : '',
    ]);
    if (said !== 'done' && said !== 'was due') return false;
    if (said === 'was due') counts.change(queue, -1);
    if (owes) webhooks.note(id);
    if (isOver && data.call !== null) listener().onEndedUnrun(next, data.call);
    listener().onChanged(next);
    return true;
  }

  /** Null if the token is not the job's lock. */
  async #store(
    job: HeldJob,
    next: JobRecord,
    body: Buffer | null,
    ahead: FetchAhead | null,
  ): Promise<JobRecord | null> {
    const { link, queues } = this.#parts;
    const { id, token, lock } = job;
    const queue = queues.get(job.queue);
    const data = nextData(job.data, next, job.stalls, token);
    const { commands } = link;
    const isCancelled = (): Promise<string | null> =>
      link.use(() => commands.hGet(`${PREFIX}:${job.queue}:${id}`, 'can'));
    if (!hasEnded(next)) {
      const [isDone, flag] = await Promise.all([
        queue.delay(id, lock, next.dueAt, Date.now(), data),
        isCancelled(),
      ]);
      if (isDone && flag === '1') await this.cancel(id);
      return isDone ? next : null;
    }
    const [isKept, done, flag] = await Promise.all([
      this.#keep(job, next.end.owesWebhook, body),
      queue.finish(id, lock, this.#bullEnd(next), data, ahead?.worker ?? null),
      isCancelled(), // once it has ended nobody cancels it
    ]);
    if (done === null) return null;
    ahead?.fetched.resolve(done.next);
    if (job.data.body === undefined) link.use(() => commands.del(`${PREFIX}:body:${id}`)).catch(() => {}); // it expires
    return endedRecord(next, !isKept, next.end.owesWebhook, flag === '1');
  }

  /** Resolves with whether the result is kept. */
  async #keep({ id, lock }: HeldJob, owesWebhook: boolean, body: Buffer | null): Promise<boolean> {
    const { link, limits } = this.#parts;
    const isKept = await link.run('keep', [
      id,
      lock,
      body === null ? '' : String(bytesOfEnded(body.length)),
      String(limits.maxBytes),
      String(limits.retentionMs + SPARE_MS),
      owesWebhook ? OwedWebhooks.untilMs() : '',
      body ?? '',
    ]);
    return isKept === 1;
  }

  /** Whether an answer of Redis was lost that said that the outcome is stored: then the record. */
  async #storedBy({ id, token }: HeldJob): Promise<JobRecord | null> {
    const found = await this.read(id);
    return found?.data.by === token ? found.record : null;
  }

  #bullEnd({ state, end }: JobRecord): BullEnd {
    const { endedAt = 0, result = null, error = null } = end ?? {};
    const atMs = this.#endAt(endedAt);
    if (result === null) return { target: 'failed', text: reasonOf(error), state, atMs };
    const { status, contentType } = result.head;
    return {
      target: 'completed',
      text: JSON.stringify({ status, contentType, bytes: result.bytes }),
      state,
      atMs,
    };
  }

  /** Ends of one millisecond keep their order: those that ended first are dropped first. */
  #endAt(endedAtMs: number): number {
    const behindMs = this.#lastEndMs - endedAtMs;
    const isSame = behindMs >= 0 && behindMs < SAME_MS;
    return (this.#lastEndMs = isSame ? this.#lastEndMs + 0.001 : endedAtMs);
  }
}

function reasonOf(error: KeptError | null): string {
  return (error?.message ?? '').slice(0, MAX_REASON_CHARS);
}

/** When a job expires, for a script; empty if it does not. */
function expiryOf(record: JobRecord): string {
  const atMs = expiresAt(record);
  return atMs === Infinity ? '' : String(atMs);
}
