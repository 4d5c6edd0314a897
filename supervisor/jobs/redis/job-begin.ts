/**
 * Begins jobs: fetches the next ones, which BullMQ locks with the token of this begin. From then on a job counts as begun, and
 * only an outcome with that token ends it.
 *
 * If more than half a lock has passed since the fetch, by the monotonic or the calendar clock, the jobs are given back: this
 * process or its machine was frozen, and they may be called lost soon. A begin that fails half-way is taken back as soon as
 * Redis answers.
 */
import { ServeError } from '../../../protocol/errors.js';
import { deferred } from '../../machine/deferred.js';
import { hasEnded, keptError, type BegunJob, type JobTarget } from '../job-record.js';
import { expired, expiresAt, failedUnrun, settled } from '../job-rules.js';
import type { FetchedJob } from './bull-queue.js';
import type { HeldJob } from './held-jobs.js';
import type { FetchAhead, JobSteps, StepParts } from './job-steps.js';
import { placeIn, PREFIX } from './queue-name.js';
import { fetchedRecord, LOST, workerName } from './stored-job.js';

export interface BeginParts extends StepParts {
  readonly steps: JobSteps;
  readonly lockMs: number;
}

/** A job that is about to end: the next one of its queue is fetched in the same step. */
export interface Ending {
  readonly job: HeldJob;
  ahead: FetchAhead | null;
}

/** One begin. */
export class JobBegin {
  /** The name of the worker, for BullMQ: its jobs are found by it. */
  readonly worker: string;
  readonly #parts: BeginParts;
  readonly #target: JobTarget;
  readonly #token: string;
  readonly #ending: Ending | null;
  readonly #begun: BegunJob[] = [];
  readonly #held: HeldJob[] = [];
  /** Queues in which there was nothing. */
  readonly #empty = new Set<string>();

  /** `endings`: of this turn of the event loop; this begin may join one of them. */
  constructor(parts: BeginParts, target: JobTarget, token: string, endings: Iterable<Ending>) {
    this.#parts = parts;
    this.#target = target;
    this.#token = token;
    this.worker = workerName(target.version, token);
    this.#ending = this.#join(endings);
  }

  async run(): Promise<readonly BegunJob[]> {
    const { lockMs, steps } = this.#parts;
    const fetchedAt = new Moment();
    if (!(await this.#fetchedAhead())) await this.#fetchAll();
    if (!fetchedAt.isPast(lockMs / 2)) return this.#begun;
    await Promise.all(this.#held.map((job) => steps.giveBack(job, false)));
    return [];
  }

  /** Joins an end if one job is wanted, and no other queue has one: BullMQ fetches the next of the same queue. */
  #join(endings: Iterable<Ending>): Ending | null {
    const [queue, ...others] = this.#parts.counts.queuesFor(this.#target, null);
    if (queue === undefined || others.length > 0) return null;
    if (this.#target.routes.get(placeIn(queue).route) !== 1) return null;
    for (const ending of endings) {
      if (ending.ahead !== null || ending.job.queue !== queue) continue;
      ending.ahead = { worker: this.worker, fetched: deferred() };
      return ending;
    }
    return null;
  }

  async #fetchedAhead(): Promise<boolean> {
    const fetched = (await this.#ending?.ahead?.fetched.promise) ?? null;
    if (this.#ending === null || fetched === null) return false;
    const { queue, lock } = this.#ending.job;
    const begun = await this.#begin(this.#hold(queue, fetched, lock));
    if (begun !== null) this.#begun.push(begun);
    return begun !== null;
  }

  async #fetchAll(): Promise<void> {
    for (let route: string | null = null; ;) {
      const { queue, isOnly } = await this.#nextQueue(route);
      if (queue === null) return;
      const place = placeIn(queue);
      const free = (this.#target.routes.get(place.route) ?? 0) - this.#begun.length;
      if (free <= 0) return;
      await this.#fetch(queue, isOnly ? free : 1);
      if (this.#begun.length > 0) route = place.route;
    }
  }

  /** The queue with the first job, of one route if some have begun. */
  async #nextQueue(route: string | null): Promise<{ queue: string | null; isOnly: boolean }> {
    const { counts, link } = this.#parts;
    const queues = counts.queuesFor(this.#target, route).filter((queue) => !this.#empty.has(queue));
    const [first = null] = queues;
    if (queues.length <= 1) return { queue: first, isOnly: true };
    const best = await link.run('heads', queues);
    return { queue: queues[Number(best) - 1] ?? null, isOnly: false };
  }

  async #fetch(queue: string, most: number): Promise<void> {
    const { queues, counts } = this.#parts;
    const fetches = Array.from({ length: most }, () =>
      queues.get(queue).fetch(this.#token, this.worker, Date.now()),
    );
    const fetched = (await Promise.all(fetches)).filter((job) => job !== null);
    const held = fetched.map((job) => this.#hold(queue, job, this.#token));
    if (held.length < most) {
      this.#empty.add(queue);
      counts.set(queue, 0);
    }
    const begun = await Promise.all(held.map((job) => this.#begin(job)));
    this.#begun.push(...begun.filter((job) => job !== null));
  }

  #hold(queue: string, { id, data, atMs, stalls }: FetchedJob, lock: string): HeldJob {
    const record = fetchedRecord(data, this.worker, atMs);
    const ids = { id, queue, token: this.#token, lock, worker: this.worker };
    const job = { ...ids, data, stalls, record, isUnsure: false, isGone: false };
    this.#parts.held.add(job);
    this.#held.push(job);
    this.#parts.counts.change(queue, -1);
    return job;
  }

  /** Null if the job is not to begin. */
  async #begin(job: HeldJob): Promise<BegunJob | null> {
    const { steps, listener } = this.#parts;
    const { id, data, record } = job;
    const nowMs = Date.now();
    const { createdAt, begunAt } = record;
    const queueMs = (begunAt ?? nowMs) - createdAt;
    if (hasEnded(data.record)) {
      this.#parts.held.release(job);
      return this.#drop(job, steps.putBack({ id, data, fetches: '' }, job.lock));
    }
    if (job.stalls > data.stalls || (data.record.attempts > 0 && (await this.#wasCancelled(job)))) {
      const lost = settled(job.record, { error: LOST, runMs: 0, queueMs }, nowMs, true);
      return this.#drop(job, steps.endUnrun(job, lost));
    }
    if (expiresAt(data.record) <= nowMs)
      return this.#drop(job, steps.endUnrun(job, expired(data.record, nowMs)));
    const body = await this.#bodyOf(job);
    if (body === null || data.call === null)
      return this.#drop(job, steps.endUnrun(job, failedUnrun(record, bodyLost(id), nowMs)));
    listener().onChanged(record);
    return { record, call: data.call, pieces: [body] };
  }

  async #drop(job: HeldJob, ending: Promise<unknown>): Promise<null> {
    this.#held.splice(this.#held.indexOf(job), 1);
    await ending;
    return null;
  }

  /** A job that is tried again was cancelled, and its last server died before it could end it. */
  async #wasCancelled({ id, queue }: HeldJob): Promise<boolean> {
    const { link, held } = this.#parts;
    const flag = await link.use(() => link.commands.hGet(`${PREFIX}:${queue}:${id}`, 'can'));
    if (flag === '1') held.cancel(id);
    return flag === '1';
  }

  async #bodyOf({ id, data }: HeldJob): Promise<Buffer | null> {
    return data.body === undefined ? this.#parts.link.bytes(`${PREFIX}:body:${id}`) : Buffer.from(data.body);
  }
}

function bodyLost(id: string): ReturnType<typeof keptError> {
  return keptError(new ServeError('SERVE_INTERNAL', `Redis has no body of the job ${id}.`));
}

/** A moment on both clocks: the monotonic one stands still while the machine is suspended, the other one may be set. */
class Moment {
  readonly #monotonicMs = performance.now();
  readonly #calendarMs = Date.now();

  isPast(limitMs: number): boolean {
    return performance.now() - this.#monotonicMs > limitMs || Date.now() - this.#calendarMs > limitMs;
  }
}
