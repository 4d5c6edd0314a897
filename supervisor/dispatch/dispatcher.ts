/**
 * The only code that pairs a job with a worker.
 *
 * 1. `admit` decides before the body is read: held, or refused with the reason and a time to come back.
 * 2. `submit` puts the job in line; `pump` gives the head of the line to a worker, as long as one may take it.
 * 3. A worker's news (`finished`, `lost`) changes the facts and calls `pump` again.
 */
import { ServeError, shuttingDown, type ErrorCode } from '../../protocol/errors.js';
import { Arrivals, type Admission } from './arrivals.js';
import type { Job, JobHolder } from './job.js';
import { QueueTimeout } from './queue-timeout.js';
import { JobQueue } from './queue.js';
import { longCallMs, sendAhead, type SendAhead } from './send-ahead.js';
import { ServiceTime } from './service-time.js';

/** A worker that is ready, as the dispatcher sees it. */
export interface ReadyWorker extends JobHolder {
  /** Calls it holds, running or sent ahead. */
  readonly load: number;
  /** Batches that they are in, running or sent ahead; a call that runs alone is a batch of one. */
  readonly heldBatches: number;
  /** How long the first of them has been running, or waited for by us; 0 if there is none. */
  readonly runningMs: number;
  /** What runs lasts as long as its client likes: nothing may be sent ahead behind it. */
  readonly isEngaged: boolean;
  /** Those calls, in the order sent. */
  heldJobs(): Job[];
  /** Gives it a batch: one or more jobs of one route, which begin together. */
  assign(jobs: readonly Job[]): void;
}

/** What the pool of workers can do for this model now. */
export interface Supply {
  readyWorkers(): readonly ReadyWorker[];
  /** Why a new call is not taken; null if it is. */
  refusal(): ServeError | null;
  /** Why no worker will ever come for a call that was taken; null if one may. */
  hopeless(): ServeError | null;
  /** When a first worker may be ready, for a caller that asks; null if unknown. */
  readyInMs(): number | null;
}

export interface DispatchLimits {
  readonly queueSize: number;
  readonly queueBytes: number;
  readonly queueTimeoutMs: number;
}

/** Predictions are off by the turn of an event loop or two; a call that is begun should make its deadline. */
const PREDICTION_SLACK_MS = 2;

/** How much of the time left a new call's prediction may use: what runs before it may take longer than the mean. */
const ADMITTED_SHARE = 0.85;

export class Dispatcher {
  readonly #queue = new JobQueue<Job>();
  readonly #arrivals = new Arrivals((bytes) => this.#checkRoom(bytes));
  readonly #service = new ServiceTime();
  readonly #timeout: QueueTimeout;
  readonly #supply: Supply;
  readonly #sendAhead: SendAhead;
  #limits: DispatchLimits;
  /** WebSocket bytes that clients have sent and no worker has taken yet. */
  #saidBytes = 0;
  #inFlight = 0;
  #rotation = 0;
  #isClosed = false;

  constructor(supply: Supply, limits: DispatchLimits, ahead: SendAhead = sendAhead) {
    this.#supply = supply;
    this.#sendAhead = ahead;
    this.#limits = limits;
    this.#timeout = new QueueTimeout(this.#queue, limits.queueTimeoutMs, (job) =>
      this.#failWaiting(job, this.#refusal('SERVE_QUEUE_TIMEOUT')),
    );
  }

  set limits(limits: DispatchLimits) {
    this.#limits = limits;
    this.#timeout.limitMs = limits.queueTimeoutMs;
  }

  /** Jobs in line, not counting those still arriving. */
  get queued(): number {
    return this.#queue.length;
  }

  get arriving(): number {
    return this.#arrivals.count;
  }

  get waitingBytes(): number {
    return this.#queue.bytes + this.#arrivals.bytes + this.#saidBytes;
  }

  /** Jobs that a worker holds and somebody waits for. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get service(): ServiceTime {
    return this.#service;
  }

  /**
   * Reserves a place before the body is read; when there is none, the body that arrives most slowly loses its own.
   * `announcedBytes`: Content-Length, 0 if unknown. They must fit now, but count only as they arrive.
   * @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN, SERVE_QUEUE_FULL, each with a Retry-After
   */
  admit(announcedBytes: number): Admission {
    const refusal = this.#supply.refusal();
    if (refusal !== null) throw refusal;
    const waiting = this.arriving + this.#queue.length;
    const { queueSize } = this.#limits;
    if (waiting >= queueSize && waiting - this.#idleWorkers() >= queueSize) this.#makeRoom(0);
    this.#checkRoom(announcedBytes);
    return this.#arrivals.add();
  }

  /** Refuses a call that has a place and would be answered too late. @throws SERVE_OVERLOADED with a Retry-After */
  checkDeadline(deadlineAtMs: number): void {
    const before = this.arriving + this.#queue.length - 1;
    if (this.#tooLateFor(deadlineAtMs, before)) throw this.#refusal('SERVE_OVERLOADED');
  }

  /** Counts what a conversation's client says, until a worker takes it (a negative number). @throws SERVE_QUEUE_FULL */
  countSaid(bytes: number): void {
    if (bytes > 0) this.#checkRoom(bytes);
    this.#saidBytes += bytes;
  }

  /** Takes a job over; it will settle. */
  submit(job: Job, admission: Admission): void {
    admission.release();
    const hopeless = this.#supply.hopeless(); // what was true at admission may have changed while the body came
    if (hopeless !== null) {
      job.fail(hopeless);
      return;
    }
    this.#queue.push(job);
    job.startDeadline(() => this.giveUp(job, 'SERVE_DEADLINE', "the client's deadline passed"));
    this.pump();
    if (job.isQueued) this.#timeout.watch();
  }

  /** Gives up on a job: `code` is what its owner is told, `reason` what the app is told. */
  giveUp(job: Job, error: ServeError | ErrorCode, reason: string): void {
    if (job.settled) return;
    if (job.isQueued) this.#queue.remove(job);
    job.fail(typeof error === 'string' ? new ServeError(error) : error);
    const holder = this.#forget(job);
    holder?.abandon(job, reason);
  }

  /** Fails every waiting job. */
  failQueued(error: ServeError): void {
    for (const job of this.#queue) this.#failWaiting(job, error);
  }

  /** The app's routes are known, perhaps anew: fails every waiting job that they cannot answer. */
  dropUnfit(fits: (job: Job) => boolean): void {
    for (const job of this.#queue) if (!fits(job)) this.#failWaiting(job, new ServeError('SERVE_NOT_FOUND'));
  }

  /** Fails every job that a worker holds, when nothing more can be waited for: with `begun` if it began. */
  failInFlight(begun: ServeError, notBegun: ServeError): void {
    for (const worker of this.#supply.readyWorkers()) {
      for (const job of worker.heldJobs()) this.giveUp(job, job.begun ? begun : notBegun, begun.message);
    }
  }

  /** A worker has room again: the job it held is settled. `runMs` null: it never ran. */
  finished(job: Job, runMs: number | null): void {
    if (runMs !== null) this.#service.add(runMs, job.bodyBytes + job.replyBytes);
    this.#forget(job);
    this.pump();
  }

  /** A worker died holding these jobs, in their order. What began is lost, the rest goes back to the head, once. */
  lost(jobs: readonly Job[], error: ServeError): void {
    for (const job of [...jobs].reverse()) {
      this.#detach(job);
      if (job.settled) continue;
      const losses = job.countLoss();
      if (job.begun) this.#failLost(job, error);
      else if (this.#isClosed) this.#failLost(job, shuttingDown());
      else if (losses > 1) this.#failLost(job, this.#refusal('SERVE_NOT_BEGUN'));
      else this.#requeue(job);
    }
    this.pump();
    this.#timeout.watchAnew();
  }

  /** While a job waits and a worker may take it: pair them. */
  pump(): void {
    for (let job = this.#queue.peek(); job !== null; job = this.#queue.peek()) {
      const worker = this.#choose(job);
      if (worker === null) return;
      this.#queue.shift();
      if (this.#wouldMissDeadline(job, worker)) {
        job.fail(new ServeError('SERVE_DEADLINE'));
        this.#forget(job);
        continue;
      }
      job.sendTo(worker);
      this.#inFlight += 1;
      worker.assign([job]);
    }
  }

  /** Seconds after which a refused caller has a chance; from queue, measured service time and live workers. */
  retryAfterS(): number {
    const waitMs = this.#predictWaitMs(this.#queue.length + this.arriving) ?? this.#supply.readyInMs() ?? 0;
    return Math.min(300, Math.max(1, Math.ceil(waitMs / 1000)));
  }

  /** For a server that is gone: nothing waits any more, not even what a dying worker gives back. */
  close(): void {
    this.#isClosed = true;
    this.#timeout.stop();
    this.failQueued(shuttingDown());
  }

  #choose(job: Job): ReadyWorker | null {
    const workers = this.#supply.readyWorkers();
    // A call that was lost once waits for an idle worker: behind a call that kills, it would be lost for good.
    const ahead = job.conversation === null && job.losses === 0 ? this.#sendAhead(this.#service) : 0;
    const longMs = longCallMs(this.#service);
    let least: ReadyWorker | null = null;
    this.#rotation += 1;
    for (let i = 0; i < workers.length; i += 1) {
      const worker = workers[(i + this.#rotation) % workers.length] as ReadyWorker;
      const { load } = worker;
      if (load === 0) return worker;
      if (load > ahead || (least !== null && load >= least.load)) continue;
      if (!worker.isEngaged && worker.runningMs <= longMs) least = worker;
    }
    return least;
  }

  #idleWorkers(): number {
    return this.#supply.readyWorkers().filter((worker) => worker.load === 0).length;
  }

  #predictWaitMs(waiting: number): number | null {
    const workers = this.#supply.readyWorkers();
    const held = workers.reduce((sum, worker) => sum + worker.load, 0);
    return this.#service.predictWaitMs(waiting + held, workers.length);
  }

  #tooLateFor(deadlineAtMs: number, waiting: number): boolean {
    const waitMs = this.#predictWaitMs(waiting);
    // A worker is free: the call is tried, whatever others took, or a slow spell would be believed for ever.
    if (waitMs === null || waitMs === 0) return false;
    const runMs = this.#service.meanMs ?? 0;
    return waitMs + runMs + PREDICTION_SLACK_MS > ADMITTED_SHARE * (deadlineAtMs - performance.now());
  }

  /** Running a call whose answer would come too late helps nobody and delays those behind it. */
  #wouldMissDeadline(job: Job, worker: ReadyWorker): boolean {
    const { meanMs } = this.#service;
    if (job.deadlineAtMs === null || meanMs === null || this.#queue.length === 0) return false;
    return performance.now() + (worker.load + 1) * meanMs + PREDICTION_SLACK_MS > job.deadlineAtMs;
  }

  #checkRoom(moreBytes: number): void {
    const missingBytes = this.waitingBytes + moreBytes - this.#limits.queueBytes;
    if (missingBytes > 0) this.#makeRoom(missingBytes);
  }

  /** Refuses the body that arrives most slowly. @throws SERVE_QUEUE_FULL if none gives so many bytes back */
  #makeRoom(missingBytes: number): void {
    const full = this.#refusal('SERVE_QUEUE_FULL');
    if (!this.#arrivals.evictSlowest(full, missingBytes)) throw full;
  }

  #refusal(code: ErrorCode): ServeError {
    return new ServeError(code, undefined, { retryAfterS: this.retryAfterS() });
  }

  #failWaiting(job: Job, error: ServeError): void {
    this.#queue.remove(job);
    job.fail(error);
    this.#forget(job);
  }

  #requeue(job: Job): void {
    job.comeBack();
    this.#queue.unshift(job);
  }

  #failLost(job: Job, error: ServeError): void {
    job.fail(error);
    this.#forget(job);
  }

  /** Nothing more happens to the job here. Returns the worker that holds it. */
  #forget(job: Job): JobHolder | null {
    job.stopDeadline();
    return this.#detach(job);
  }

  #detach(job: Job): JobHolder | null {
    const holder = job.leaveHolder();
    if (holder !== null) this.#inFlight -= 1;
    return holder;
  }
}
