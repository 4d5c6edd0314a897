/**
 * Begins jobs: fetches the next ones, which BullMQ locks with the token of this begin. From then on a job counts as begun, and
 * only an outcome with that token ends it.
 *
 * If more than half a lock has passed since the fetch, by the monotonic or the calendar clock, the jobs are given back: this
 * process or its machine was frozen, and they may be called lost soon. A begin that fails half-way is taken back as soon as
 * Redis answers.
 */
import { ServeError } from '../../../protocol/errors.js';
import { hasEnded, keptError, type BegunJob, type JobRecord, type JobTarget } from '../job-record.js';
import { expired, expiresAt, failedUnrun } from '../job-rules.js';
import type { HeldJob } from './held-jobs.js';
import type { Fetched, FetchAhead, JobSteps } from './job-steps.js';
import { PREFIX } from './queues.js';
import { fetchedRecord, workerName, type JobData } from './stored-job.js';

/** One begin. */
export class JobBegin {
  /** The name of the worker, for BullMQ: its jobs are found by it. */
  readonly worker: string;
  readonly #steps: JobSteps;
  readonly #target: JobTarget;
  readonly #token: string;
  readonly #ahead: FetchAhead | null;
  readonly #held = new Set<HeldJob>();

  /** `endings`: of this turn of the event loop; this begin joins one of them. */
  constructor(steps: JobSteps, target: JobTarget, token: string, endings: Iterable<FetchAhead>) {
    this.#steps = steps;
    this.#target = target;
    this.#token = token;
    this.worker = workerName(target.version, token);
    this.#ahead = this.#join(endings);
  }

  async run(): Promise<readonly BegunJob[]> {
    const { lockMs } = this.#steps.parts;
    const fetchedAt = new Moment();
    const ahead = (await this.#ahead?.fetched.promise) ?? null;
    let begun = ahead === null ? [] : await this.#beginAll(ahead);
    for (let args = this.#args(); begun.length === 0 && args.length > 0; args = this.#args())
      begun = await this.#beginAll(await this.#fetch(args));
    if (!fetchedAt.isPast(lockMs / 2)) return begun;
    await Promise.all(Array.from(this.#held, (job) => this.#steps.giveBack(job, false)));
    return [];
  }

  #join(endings: Iterable<FetchAhead>): FetchAhead | null {
    for (const ending of endings) {
      if (ending.args.length > 0) continue;
      ending.args = this.#args();
      return ending.args.length > 0 ? ending : null;
    }
    return null;
  }

  /** Nothing if no job waits that this server knows of. */
  #args(): FetchAhead['args'] {
    const { counts, lockMs } = this.#steps.parts;
    const queues = counts.queuesFor(this.#target).flatMap(({ name, place: { route } }) => {
      const most = this.#target.routes.get(route) ?? 0;
      return most > 0 ? [name, route, most] : [];
    });
    if (queues.length === 0) return [];
    return [this.#token, this.worker, lockMs, Date.now(), ...queues];
  }

  async #fetch(args: FetchAhead['args']): Promise<Fetched> {
    const { link, counts } = this.#steps.parts;
    const fetched = (await link.run('begin', args)) as Fetched;
    counts.note(fetched[1]);
    return fetched;
  }

  async #beginAll([jobs]: Fetched): Promise<BegunJob[]> {
    const held = jobs.map((job) => this.#hold(...job));
    const begun = await Promise.all(held.map((job) => this.#begin(job)));
    return begun.filter((job) => job !== null);
  }

  #hold(queue: string, id: string, named: readonly string[]): HeldJob {
    const fields = new Map<string, string>();
    for (let i = 0; i < named.length; i += 2) fields.set(named[i] as string, named[i + 1] as string);
    const data = JSON.parse(fields.get('data') ?? '') as JobData;
    const fetched = fetchedRecord(data, this.worker, Math.floor(Number(fields.get('processedOn'))));
    // One that is tried again was cancelled, and its last server died before it could end it.
    const record = fields.has('can') ? { ...fetched, isCancelled: true } : fetched;
    const read = { id, queue, data, record, stalls: Number(fields.get('stc') ?? 0) };
    const job = this.#steps.parts.held.add(read, this.#token, this.worker);
    this.#held.add(job);
    return job;
  }

  /** Null if the job is not to begin. */
  async #begin(job: HeldJob): Promise<BegunJob | null> {
    const { link, tell } = this.#steps.parts;
    const { id, data, record } = job;
    const nowMs = Date.now();
    if (hasEnded(data.record) || job.stalls > data.stalls || record.isCancelled)
      return this.#drop(job, this.#steps.giveBack(job, false));
    if (expiresAt(data.record) <= nowMs) return this.#end(job, expired(data.record, nowMs));
    const body = data.body === undefined ? await link.bytes(`${PREFIX}:body:${id}`) : Buffer.from(data.body);
    if (body === null || data.call === null) return this.#end(job, failedUnrun(record, bodyLost(id), nowMs));
    tell('onChanged', record);
    return { record, call: data.call, pieces: [body] };
  }

  #end(job: HeldJob, ended: JobRecord): Promise<null> {
    return this.#drop(
      job,
      this.#steps.leaveUnrun(job, () => ended),
    );
  }

  async #drop(job: HeldJob, leaving: Promise<unknown>): Promise<null> {
    this.#held.delete(job);
    await leaving;
    return null;
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
