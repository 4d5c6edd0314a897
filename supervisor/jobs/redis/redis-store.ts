/**
 * Keeps jobs in a Redis that many servers share: each of them accepts, runs and answers for all.
 *
 * A job is BullMQ's: its tools show what waits, runs and has ended. Beside it are its place in the bytes of all jobs, its
 * idempotency key, large bodies and results (`layout.ts`). A fetch makes a job running (`job-begin.ts`), a script that checks
 * the token of that fetch ends it (`job-steps.ts`). While a server runs a job it renews the lock (`held-jobs.ts`); the jobs of
 * one that does not are lost, or tried again (`upkeep.ts`). Servers hear of each other's steps by streams (`news-reader.ts`).
 */
import { deferred } from '../../machine/deferred.js';
import { within } from '../../machine/limit-timer.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import {
  hasEnded,
  placeOf,
  type Acceptance,
  type BegunJob,
  type JobPage,
  type JobProgress,
  type JobRecord,
  type JobTarget,
  type KeptWebhook,
  type ListQuery,
  type NewJob,
  type Outcome,
} from '../job-record.js';
import { bytesOfNew, expiresAt } from '../job-rules.js';
import { StoreBase, type JobStore, type KeepLimits } from '../job-store.js';
import { HeldJobs } from './held-jobs.js';
import { JobBegin } from './job-begin.js';
import { JobSteps, MAX_BODY_BYTES, type FetchAhead, type StepParts } from './job-steps.js';
import { NewsReader } from './news-reader.js';
import { OwedWebhooks } from './owed-webhooks.js';
import { nameOf, placeIn, PREFIX, WaitingCounts } from './queues.js';
import type { RedisLink } from './redis-link.js';
import { bullJob, newData, readJob } from './stored-job.js';
import { Upkeep } from './upkeep.js';

/**
 * Time after which a job of a server that does not renew it is lost. Only the jobs that a server was running wait so long. A
 * server that is held up longer loses them, though it may still run them: 5 s is more than twice the pauses that machines have
 * (a moved virtual machine, a throttled container).
 */
export const LOCK_MS = 5000;

const RENEWALS_PER_LOCK = 4;

/** A body is dropped with its job; should that have no end, so long after the job had to begin. */
const SPARE_MS = 7 * 24 * 60 * 60_000;

/** Longest time to leave. */
const CLOSE_LIMIT_MS = 2000;

export interface RedisStoreOptions {
  readonly link: RedisLink;
  /** Names the store, without its password. */
  readonly name: string;
  readonly limits: KeepLimits;
  readonly lockMs?: number;
}

export class RedisStore extends StoreBase implements JobStore {
  readonly name: string;
  readonly isDurable = true;
  protected readonly counts = new WaitingCounts();
  readonly #parts: StepParts;
  readonly #steps: JobSteps;
  readonly #news: NewsReader;
  readonly #upkeep: Upkeep;
  /** Workers of begins that failed half-way: what they may have fetched is given back. */
  readonly #lostBegins = new Map<string, string>();
  /** For the jobs that end in this turn of the event loop. */
  readonly #endings = new Set<FetchAhead>();
  #isTakingBack = false;
  #renewal: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor({ link, name, limits, lockMs = LOCK_MS }: RedisStoreOptions) {
    super();
    this.name = name;
    const { counts, tell } = this;
    const held = new HeldJobs(link, lockMs, (id) => tell('onCancelled', id));
    this.#parts = { link, limits, lockMs, held, counts, webhooks: new OwedWebhooks(link), tell };
    this.#steps = new JobSteps(this.#parts);
    this.#news = new NewsReader(link, (kind, text) => {
      if (kind === 'cancelled') held.cancel(text);
      else if (kind === 'waiting') {
        counts.hear(text);
        tell('onDue', placeIn(text).model);
      } else if (!held.runs(text)) tell('onMoved', text);
    });
    this.#upkeep = new Upkeep(this.#steps, (...first) => this.#news.start(...first));
  }

  /** The connections are open, again. */
  onOpen(): void {
    void this.#renew();
    this.#upkeep.open();
  }

  async accept(job: NewJob): Promise<Acceptance> {
    if (job.body.bytes > MAX_BODY_BYTES) return { is: 'too large', maxBytes: MAX_BODY_BYTES };
    const nowMs = Date.now();
    const { record, key } = job;
    const { data, body } = newData(job);
    const queue = nameOf(placeOf(record));
    const isDue = record.dueAt <= nowMs;
    const [is, found] = (await this.#parts.link.run('accept', [
      ...[
        record.id,
        queue,
        bytesOfNew(job.call),
        this.#parts.limits.maxBytes,
        data.key ?? '-',
        key?.content ?? '',
      ],
      ...[
        expiresAt(record),
        nowMs,
        this.#parts.limits.retentionMs,
        expiresAt(record) - nowMs + SPARE_MS,
        body ?? '',
      ],
      ...[...bullJob(record, data, nowMs), this.#parts.link.id],
    ])) as ['accepted' | 'conflict' | 'full' | 'known', unknown];
    if (is === 'conflict' || is === 'full') return { is };
    if (is === 'known') return { is, record: readJob(found)?.record ?? record };
    if (isDue) this.counts.add(queue, 1);
    this.#news.addQueue(queue, nowMs);
    job.body.release();
    if (isDue) this.tell('onDue', record.model);
    return { is, record };
  }

  async withdraw(id: string): Promise<void> {
    await this.#parts.link.run('withdraw', [id]);
    this.#upkeep.start();
  }

  async begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    await Promise.resolve(); // the job that the worker has ended is about to be stored, in the same turn
    const begin = new JobBegin(this.#steps, target, token, this.#endings);
    try {
      return await begin.run();
    } catch (error) {
      this.#lostBegins.set(begin.worker, token);
      throw error;
    }
  }

  async giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    const job = this.#parts.held.get(id, token);
    if (job !== null) await this.#steps.giveBack(job, isLoss);
  }

  async settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    const job = this.#parts.held.get(id, token);
    if (job === null) return null;
    if (job.isUnsure) return this.#steps.settle(job, outcome);
    const ahead: FetchAhead = { args: [], fetched: deferred() };
    ahead.fetched.promise.catch(() => {}); // no begin may join it
    this.#endings.add(ahead);
    for (let i = 0; i < 2; i += 1) await Promise.resolve(); // a begin of the same turn joins it
    this.#endings.delete(ahead);
    return this.#steps.settle(job, outcome, ahead);
  }

  progress(id: string, token: string, progress: JobProgress): void {
    const job = this.#parts.held.get(id, token);
    if (job !== null) this.#steps.progress(job, progress);
  }

  cancel(id: string): Promise<JobRecord | null> {
    return this.#steps.cancel(id);
  }

  async get(id: string): Promise<JobRecord | null> {
    return (await this.#steps.read(id))?.record ?? null;
  }

  /** A write of nothing, which a Redis refuses that has no memory or no disk for more. */
  async probe(): Promise<void> {
    await this.#parts.link.use(() => this.#parts.link.commands.setRange(`${PREFIX}:none`, 0, ''));
  }

  readResult(id: string): Promise<Buffer | null> {
    return this.#parts.link.bytes(`${PREFIX}:result:${id}`);
  }

  async list({ state, limit, from }: ListQuery): Promise<JobPage> {
    const records: JobRecord[] = [];
    for (let next = from === null ? '' : String(from); ;) {
      const args = [state ?? '', limit - records.length, next, Date.now(), this.#parts.limits.retentionMs];
      const reply = (await this.#parts.link.run('list', args)) as [unknown[], string, string];
      records.push(...reply[0].flatMap((one) => readJob(one)?.record ?? []));
      next = reply[1];
      if (reply[2] === '') return { records, next: next === '' ? null : Number(next) };
    }
  }

  owe(webhook: Webhook): Promise<void> {
    return this.#parts.webhooks.owe(webhook);
  }

  forgetWebhook(id: string): Promise<void> {
    return this.#parts.webhooks.forget(id);
  }

  endWebhook(jobId: string): Promise<void> {
    return this.#parts.webhooks.end(jobId);
  }

  takeWebhooks(limit: number): Promise<readonly KeptWebhook[]> {
    return this.#parts.webhooks.take(limit, async (id) => {
      const job = await this.#steps.read(id);
      if (job === null || !hasEnded(job.record) || job.data.call === null) return null;
      return { of: 'job', record: job.record, call: job.data.call, body: await this.readResult(id) };
    });
  }

  /** Resolves once no look is under way. */
  async idle(): Promise<void> {
    await this.#upkeep.idle();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#renewal !== null) clearTimeout(this.#renewal);
    this.#upkeep.close();
    const leave = async (): Promise<void> => {
      await this.idle();
      await this.#parts.webhooks.leave();
    };
    if (this.#parts.link.isReady)
      await within(
        CLOSE_LIMIT_MS,
        leave().catch(() => {}),
      ); // what it owes is another's soon
    this.#parts.link.close();
  }

  /** Renews locks and owed webhooks, then again and again. */
  async #renew(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#renewal !== null) clearTimeout(this.#renewal);
    this.#renewal = setTimeout(() => void this.#renew(), this.#parts.lockMs / RENEWALS_PER_LOCK).unref();
    if (!this.#parts.link.isReady) return;
    const work = Promise.all([this.#parts.held.renew(), this.#parts.webhooks.renew(), this.#takeBack()]);
    await work.catch(() => {}); // it is done the next time: a look tells that Redis is away
  }

  /** Gives back what begins have fetched whose answers were lost. */
  async #takeBack(): Promise<void> {
    if (this.#isTakingBack) return;
    this.#isTakingBack = true;
    try {
      for (const [worker, token] of [...this.#lostBegins]) {
        for (const id of (await this.#parts.link.run('fetched', [worker])) as string[]) {
          const found = await this.#steps.read(id);
          if (found !== null) await this.#steps.giveBack(this.#parts.held.add(found, token, worker), false);
        }
        this.#parts.held.releaseOf(worker); // what is not active any more
        this.#lostBegins.delete(worker);
      }
    } finally {
      this.#isTakingBack = false;
    }
  }
}
