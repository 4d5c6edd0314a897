/** A dispatcher with fake workers, and mocked time. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { type Admission, ByteBudget } from '../../../supervisor/dispatch/arrivals.js';
import { Dispatcher, type DispatchLimits } from '../../../supervisor/dispatch/dispatcher.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { NO_FEED, type JobFeed } from '../../../supervisor/dispatch/job-feed.js';
import { sendAhead } from '../../../supervisor/dispatch/batcher.js';
import { FakeWorker, OK, newCall, type CallOptions } from './calls.js';

const LIMITS: DispatchLimits = {
  queueSize: 4,
  queueTimeoutMs: 60_000,
  batchSize: 1,
  maxBatchDelayMs: 0,
};
export const LOST = new ServeError('SERVE_WORKER_LOST');

export class Bench {
  readonly workers: FakeWorker[];
  /** Workers that get no more calls. */
  readonly standing: FakeWorker[] = [];
  readonly dispatcher: Dispatcher;
  readonly outcomes = new Map<string, string>();
  /** Null: its workers do not come and go with the calls. */
  startsInMs: number | null = null;
  readyInMs: number | null = null;
  readonly #health: {
    refusal: ServeError | null;
    noWorkerError: ServeError | null;
    predictReadyMs(): number | null;
  } = {
    refusal: null,
    noWorkerError: null,
    predictReadyMs: () => this.readyInMs,
  };
  #nowMs = 1000;
  readonly #t: TestContext;

  constructor(
    t: TestContext,
    workers: number,
    limits: Partial<DispatchLimits> & { queueBytes?: number; feed?: JobFeed } = {},
  ) {
    const { queueBytes = 1000, feed = NO_FEED, ...rest } = limits;
    this.#t = t;
    t.mock.timers.enable({ apis: ['setTimeout'] });
    t.mock.method(performance, 'now', () => this.#nowMs);
    this.workers = Array.from({ length: workers }, () => new FakeWorker());
    const supply = { crew: this, health: this.#health, startsInMs: () => this.startsInMs };
    const all = { ...LIMITS, ...rest };
    this.dispatcher = new Dispatcher(supply, all, new ByteBudget(queueBytes), sendAhead, feed);
  }

  get callable(): FakeWorker[] {
    return this.workers.filter((worker) => !this.standing.includes(worker));
  }

  get holders(): readonly FakeWorker[] {
    return this.workers;
  }

  /** The error of every call from now on: no worker comes. */
  set noWorker(error: ServeError) {
    this.#health.refusal = error;
    this.#health.noWorkerError = error;
  }

  submit(id: string, options: CallOptions = {}): Call {
    const call = newCall(id, { ...options, onSettled: (outcome) => this.#settle(id, outcome) });
    const admission = this.dispatcher.admit(call.bodyBytes);
    if (call.deadlineAtMs !== null) this.dispatcher.checkDeadline(call.deadlineAtMs);
    this.dispatcher.submit(call, admission);
    return call;
  }

  /** The first call of this worker ends well. */
  finish(worker: FakeWorker, runMs: number | null = 10): void {
    const call = worker.release();
    call.begin(this.#nowMs);
    this.dispatcher.finished(call, runMs);
    call.reply(OK, [], 0, runMs ?? 0);
  }

  /** All calls of the first batch of this worker end well. */
  finishBatch(worker: FakeWorker, runMs = 10): void {
    for (let left = worker.batches[0] as number; left > 0; left -= 1) this.finish(worker, runMs);
  }

  /** The worker dies with all its calls. */
  lose(worker: FakeWorker): void {
    this.workers.splice(this.workers.indexOf(worker), 1);
    this.dispatcher.lost(worker.held, LOST);
  }

  /** A worker comes whose routes take batches of this size. */
  addWorker(largestBatch: number): void {
    const worker = new FakeWorker();
    worker.largestBatch = largestBatch;
    this.workers.push(worker);
    this.dispatcher.pump();
  }

  /** Adds measured calls of this length. */
  learn(runMs: number): void {
    for (let i = 0; i < 5; i += 1) this.dispatcher.service.add(runMs, 0);
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    this.#t.mock.timers.tick(ms);
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  refusal(bytes = 0, deadlineAtMs: number | null = null): ServeError | null {
    let admission: Admission | null = null;
    try {
      admission = this.dispatcher.admit(bytes);
      if (deadlineAtMs !== null) this.dispatcher.checkDeadline(deadlineAtMs);
      return null;
    } catch (error) {
      assert.ok(error instanceof ServeError);
      return error;
    } finally {
      admission?.release();
    }
  }

  #settle(id: string, outcome: string): void {
    assert.ok(!this.outcomes.has(id), `${id} settles once`);
    this.outcomes.set(id, outcome);
  }
}
