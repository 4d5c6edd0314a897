/**
 * The only code that pairs a call with a worker.
 *
 * 1. `admit` decides before the body is read: the call is held, or refused with the reason and a Retry-After.
 * 2. `submit` puts the call in line; `pump` does the steps of the batcher until there is none.
 * 3. Events of workers (`finished`, `lost`) change the state and call `pump` again.
 *
 * Jobs that outlive their clients wait in a store, not here: a worker that is free pulls them (`JobPulls`).
 */
import { ServeError, shuttingDown, type ErrorCode } from '../../protocol/errors.js';
import { Alarm, startLimit } from '../machine/limit-timer.js';
import { Arrivals, Place, type Admission, type ByteBudget } from './arrivals.js';
import { Batcher, sendAhead, type BatchRules, type SendAhead } from './batcher.js';
import type { Call, ReadyWorker } from './call.js';
import { JobPulls, NO_FEED, type JobFeed } from './job-feed.js';
import { Lines } from './lines.js';
import { BatchRun, ServiceTime } from './service-time.js';

/** The model's workers, and whether they can take calls: those parts of the model that calls depend on. */
interface Supply {
  readonly crew: {
    readonly callable: readonly ReadyWorker[];
    /** The same, and workers that get no more calls and may hold some. */
    readonly holders: readonly ReadyWorker[];
  };
  readonly health: {
    /** The error with which a new call is refused; null if it is taken. */
    readonly refusal: ServeError | null;
    /** The error of an admitted call if no worker will ever come for it; null if one may. */
    readonly noWorkerError: ServeError | null;
    /** Estimated time until a first worker is ready; null if unknown. */
    predictReadyMs(): number | null;
  };
  /** The same for calls that need one by their deadline; null unless the model starts workers for its calls, and has none. */
  startsInMs(): number | null;
}

export interface DispatchLimits extends BatchRules {
  readonly queueSize: number;
  readonly queueTimeoutMs: number;
}

/** Learns of the calls of a model; a model whose number of workers is fixed, on a server without metrics, has none. */
export interface CallWatch {
  /** A call has joined the line, or a job was taken from its store. */
  came(): void;
  /** Calls or due jobs wait, and no worker is free for them. */
  waits(): void;
  /** A run of so many calls has ended. */
  ran(runMs: number, calls: number): void;
  /** A call was refused: the queue is full, or no worker could be ready by its deadline. */
  refused(): void;
}

export class Dispatcher {
  /** The server's, for the bytes that wait or arrive for all its models. */
  readonly budget: ByteBudget;
  /** The model's jobs, which wait in the store. */
  readonly feed: JobFeed;
  readonly service = new ServiceTime();
  readonly lines: Lines<Call>;
  /** Number of calls that workers hold and whose clients wait; only the dispatcher changes it. */
  inFlight = 0;
  /** Learns of the calls from now on. */
  watch: CallWatch | null = null;
  readonly #arrivals: Arrivals;
  readonly #supply: Supply;
  readonly #batcher: Batcher<Call, ReadyWorker>;
  readonly #pulls: JobPulls;
  readonly #batchAlarm = new Alarm(() => this.#pump());
  /** One timer for all lines: the call that came first has waited longest. */
  readonly #timeoutAlarm = new Alarm(() => this.#failTimedOut(), startLimit);
  #limits: DispatchLimits;
  /** WebSocket bytes that clients have sent and no worker has taken yet. */
  #clientBytes = 0;
  #isClosed = false;
  #callersWait = false;

  constructor(
    supply: Supply,
    limits: DispatchLimits,
    budget: ByteBudget,
    ahead: SendAhead = sendAhead,
    feed: JobFeed = NO_FEED,
  ) {
    this.#supply = supply;
    this.feed = feed;
    this.#pulls = new JobPulls(feed, (worker, calls) => this.#onPulled(worker, calls));
    this.budget = budget;
    this.lines = new Lines(budget);
    this.#arrivals = new Arrivals(budget, () => this.#refusal('SERVE_QUEUE_FULL'));
    this.#limits = limits;
    this.#batcher = new Batcher(limits, this.service, ahead);
  }

  /** Sets the limits, also for calls that wait already. */
  set limits(limits: DispatchLimits) {
    this.#limits = limits;
    this.#batcher.rules = limits;
    if (this.queued === 0) return;
    // Deferred: the caller may still be changing state.
    this.#batchAlarm.set(performance.now());
    this.#timeoutAlarm.set(performance.now());
  }

  /** Number of calls and due jobs that wait for a worker, without calls that are still arriving. */
  get queued(): number {
    return this.lines.length + this.feed.waiting + this.#pulls.workers.size;
  }

  get arriving(): number {
    return this.#arrivals.places.length;
  }

  /** Bytes of this model's calls that wait or arrive. */
  get waitingBytes(): number {
    return this.lines.bytes + this.#arrivals.bytes + this.#clientBytes;
  }

  /** Whether no call is waiting, arriving or running. */
  get isQuiet(): boolean {
    return this.queued + this.arriving + this.inFlight === 0;
  }

  /**
   * Reserves a place before the body is read; if there is none, the slowest arriving body loses its place.
   * `announcedBytes`: Content-Length, 0 if unknown. They must fit now, but count only as they arrive.
   * @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN, SERVE_QUEUE_FULL, each with a Retry-After
   */
  admit(announcedBytes: number): Place {
    const { refusal } = this.#supply.health;
    if (refusal !== null) throw refusal;
    const over = this.#arrivals.places.length + this.lines.length - this.#limits.queueSize;
    if (over >= 0 && over >= this.#freePlaces()) {
      this.watch?.refused();
      this.#arrivals.makePlace();
    }
    this.budget.makeRoom(announcedBytes, this.#arrivals.refusal);
    return new Place(this.#arrivals);
  }

  /** Refuses a call that has a place and would be answered too late. @throws SERVE_OVERLOADED with a Retry-After */
  checkDeadline(deadlineAtMs: number): void {
    const leftMs = deadlineAtMs - performance.now();
    const startsInMs = this.#supply.startsInMs();
    const startsTooLate = startsInMs !== null && startsInMs > leftMs;
    if (startsTooLate) this.watch?.refused();
    const { callable } = this.#supply.crew;
    if (startsTooLate || this.#batcher.comesTooLate(this.lines, callable, this.arriving - 1, leftMs))
      throw this.#refusal('SERVE_OVERLOADED');
  }

  /** Whether the worker holds no call, and none is on its way to it. */
  isFree(worker: ReadyWorker): boolean {
    return worker.load === 0 && !this.#pulls.workers.has(worker);
  }

  /** Counts bytes that the client of a WebSocket has sent, until a worker takes them (a negative number). @throws SERVE_QUEUE_FULL */
  countClientBytes(bytes: number): void {
    if (bytes > 0) this.budget.makeRoom(bytes, this.#arrivals.refusal);
    this.#clientBytes += bytes;
    this.budget.bytes += bytes;
  }

  /** Takes a call over; it will settle. */
  submit(call: Call, admission: Admission): void {
    admission.release();
    const noWorker = this.#supply.health.noWorkerError; // it may have changed while the body arrived
    if (noWorker !== null) return call.fail(noWorker);
    this.lines.push(call, performance.now());
    this.watch?.came();
    const { deadlineAtMs } = call;
    if (deadlineAtMs !== null)
      call.startDeadline(deadlineAtMs, () =>
        this.giveUp(call, 'SERVE_DEADLINE', "the client's deadline passed"),
      );
    this.#pump();
    if (call.isQueued) this.#timeoutAlarm.set(call.acceptedAtMs + this.#limits.queueTimeoutMs);
  }

  /** Fails a call before its worker has answered: `error` goes to its client, `reason` to the app. */
  giveUp(call: Call, error: ServeError | ErrorCode, reason: string): void {
    if (call.settled) return;
    if (call.isQueued) this.#leaveLine(call);
    call.fail(typeof error === 'string' ? new ServeError(error) : error);
    this.#detach(call)?.abandon(call, reason);
  }

  /** Fails every waiting call; jobs in the store go on waiting. */
  failQueued(error: ServeError): void {
    for (const call of this.lines) this.#failWaiting(call, error);
  }

  /**
   * Fails every call that has not begun: waiting, sent ahead to a worker, or with a body that still arrives. A call that was
   * pulled is not sent ahead: it is about to begin, and runs.
   */
  failNotBegun(error: ServeError): void {
    this.failQueued(error);
    this.#arrivals.evictAll(error);
    for (const worker of this.#supply.crew.holders) {
      for (const call of worker.heldCalls())
        if (!call.isPulled && !call.checkBegun()) this.giveUp(call, error, error.message);
    }
  }

  /** Fails every waiting call that does not fit the routes of the app, which is loaded now. */
  dropUnfit(fits: (call: Call) => boolean): void {
    for (const call of this.lines)
      if (!fits(call)) this.#failWaiting(call, new ServeError('SERVE_NOT_FOUND'));
    this.lines.forgetEmpty();
  }

  /**
   * Fails every call that a worker holds, at the end of the drain: with `begun` if it began, else with `notBegun`. A call that
   * was pulled fails only if it began, and stays with its worker: the store learns of its end once the worker lets go.
   */
  failInFlight(begun: ServeError, notBegun: ServeError): void {
    for (const worker of this.#supply.crew.holders) {
      for (const call of worker.heldCalls()) {
        const hasBegun = call.checkBegun();
        if (!call.isPulled) this.giveUp(call, hasBegun ? begun : notBegun, begun.message);
        else if (hasBegun) {
          call.fail(begun);
          worker.abandon(call, begun.message);
        }
      }
    }
  }

  /** A worker has room again: a call that it held has ended. `runMs` is null if it does not predict later calls. */
  finished(call: Call, runMs: number | null): void {
    const bytes = call.bodyBytes + call.replyBytes;
    const { batch } = call;
    const wholeMs = batch === null ? runMs : batch.end(runMs, bytes);
    if (wholeMs !== null) {
      const calls = batch?.calls ?? 1;
      this.service.add(wholeMs, batch?.bytes ?? bytes, calls);
      this.watch?.ran(wholeMs, calls);
    } else if (batch === null && call.hasBegun) this.watch?.ran(call.sinceBeginMs(performance.now()), 1);
    this.#detach(call);
    this.#pump();
  }

  /** A worker died holding these calls, in their order. Calls that began are lost, the others return to the head of the line, once. */
  lost(calls: readonly Call[], error: ServeError): void {
    for (const call of [...calls].reverse()) {
      this.#detach(call);
      if (call.settled) continue;
      call.losses += 1;
      if (call.checkBegun()) this.#end(call, error);
      else if (call.isPulled) call.giveBack(true);
      else if (this.#isClosed) this.#end(call, shuttingDown());
      else if (call.losses > 1) this.#end(call, this.#refusal('SERVE_NOT_BEGUN'));
      else {
        call.comeBack();
        this.lines.putBack(call);
        this.#timeoutAlarm.set(call.acceptedAtMs + this.#limits.queueTimeoutMs);
      }
    }
    this.#pump();
  }

  /** Workers or jobs have changed: gives out what can begin now. */
  pump(): void {
    this.#pulls.wake();
    this.#pump();
  }

  /** Does the steps of the batcher, until only time or an event can bring another one. */
  #pump(): void {
    const jobsWait = this.#pulls.mayHaveDue;
    if (this.lines.length > 0) this.#giveCalls(jobsWait);
    if (jobsWait) this.#pulls.begin(this.#supply.crew.callable);
    this.#noteCallersWait();
  }

  #giveCalls(jobsWait: boolean): void {
    const nowMs = performance.now();
    for (;;) {
      const { callable } = this.#supply.crew;
      const workers = jobsWait || this.#pulls.workers.size > 0 ? this.#pulls.callableOf(callable) : callable;
      const { worker, calls, late, againAtMs } = this.#batcher.plan(this.lines, workers, nowMs);
      for (const call of late) this.lines.remove(call);
      if (worker !== null && calls.length > 0) {
        for (const call of calls) this.lines.remove(call);
        if (jobsWait) this.#pulls.noteCall(worker);
        this.#give(worker, calls);
      }
      for (const call of late) this.#end(call, new ServeError('SERVE_DEADLINE'));
      if (worker !== null) continue;
      if (againAtMs !== null) this.#batchAlarm.set(againAtMs);
      return;
    }
  }

  /** Predicts the wait of a call that came now, in ms; null if unknown. */
  predictWaitMs(): number | null {
    return this.#batcher.predictWaitMs(this.lines, this.#supply.crew.callable, this.arriving);
  }

  /** Seconds after which a refused call may be tried again; from queue, measured service time and ready workers. */
  retryAfterS(): number {
    const supply = this.#supply;
    const waitMs = this.predictWaitMs() ?? supply.startsInMs() ?? supply.health.predictReadyMs() ?? 0;
    return Math.min(300, Math.max(1, Math.ceil(waitMs / 1000)));
  }

  /** The server has ended: fails waiting calls, and calls that dying workers give back later. */
  close(): void {
    this.#isClosed = true;
    this.#timeoutAlarm.stop();
    this.#batchAlarm.stop();
    this.budget.arrivals.delete(this.#arrivals);
    this.failQueued(shuttingDown());
    this.feed.close();
  }

  #give(worker: ReadyWorker, calls: readonly Call[]): void {
    const run = calls.length === 1 ? null : new BatchRun(calls.length);
    for (const call of calls) {
      call.batch = run;
      call.sendTo(worker);
    }
    this.inFlight += calls.length;
    worker.assign(calls);
  }

  #onPulled(worker: ReadyWorker, calls: readonly Call[]): void {
    const isReady = !this.#isClosed && this.#supply.crew.callable.includes(worker);
    for (const call of calls) {
      if (isReady) this.watch?.came();
      else call.giveBack(false);
    }
    if (isReady && calls.length > 0) this.#give(worker, calls);
    this.#pump();
  }

  /** Number of calls that workers could begin now. */
  #freePlaces(): number {
    let free = 0;
    for (const worker of this.#supply.crew.callable)
      if (!worker.isFrozen)
        free += Math.max(0, worker.places - worker.load - (this.#pulls.workers.has(worker) ? 1 : 0));
    return free;
  }

  #refusal(code: ErrorCode): ServeError {
    return new ServeError(code, undefined, { retryAfterS: this.retryAfterS() });
  }

  #failWaiting(call: Call, error: ServeError): void {
    this.#leaveLine(call);
    this.#end(call, error);
  }

  #leaveLine(call: Call): void {
    this.lines.remove(call);
    if (this.lines.length === 0) this.#noteCallersWait();
  }

  /** Reports to the workers whether calls wait; a call beside a free place only waits for others to join it. */
  #noteCallersWait(): void {
    const areWaiting = (this.lines.length > 0 || this.#pulls.mayHaveDue) && this.#freePlaces() === 0;
    if (!areWaiting && !this.#callersWait) return;
    this.#callersWait = areWaiting;
    for (const worker of this.#supply.crew.holders) worker.callersWait = areWaiting;
    if (areWaiting) this.watch?.waits();
  }

  /** Fails the calls that have waited longer than the queue timeout. */
  #failTimedOut(): void {
    for (let call = this.lines.findOldest(); call !== null; call = this.lines.findOldest()) {
      const dueAtMs = call.acceptedAtMs + this.#limits.queueTimeoutMs;
      if (dueAtMs > performance.now()) return this.#timeoutAlarm.set(dueAtMs);
      this.#failWaiting(call, this.#refusal('SERVE_QUEUE_TIMEOUT'));
    }
  }

  #end(call: Call, error: ServeError): void {
    call.fail(error);
    this.#detach(call);
  }

  /** Takes the call from the worker that holds it. Returns that worker. */
  #detach(call: Call): ReadyWorker | null {
    const holder = call.leaveHolder();
    if (holder !== null) this.inFlight -= 1;
    return holder;
  }
}
