/**
 * The demand for workers of one model: calls and orders that wait for one, and the history that the scaling policy needs.
 * Before: the dispatcher reports its calls. After: `sizing.ts` asks the policy.
 */
import type { CallWatch, Dispatcher } from '../dispatch/dispatcher.js';
import { ScalingHistory } from '../scaling/history.js';
import type { ScaledLine } from '../scaling/policy.js';
import type { Generations } from './generations.js';

/** Someone who waits for a worker without a call in line: a call whose app is not loaded, a warm-up, a load order. */
interface Order {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export class Demand implements CallWatch {
  readonly #dispatcher: Dispatcher;
  readonly #generations: Generations;
  readonly #onWait: () => void;
  readonly #peak = new LoadPeak();
  readonly #orders = new Set<Order>();
  #lastOrder: Order = { sinceMs: -Infinity, untilMs: Infinity };
  /** Kept from when the model first scales itself. */
  #history: ScalingHistory | null = null;

  /** `onWait` is called when calls wait that no worker can begin now. With `measures`, load is measured from the start. */
  constructor(dispatcher: Dispatcher, generations: Generations, measures: boolean, onWait: () => void) {
    this.#dispatcher = dispatcher;
    this.#generations = generations;
    this.#onWait = onWait;
    if (measures) dispatcher.watch = this;
  }

  /** Keeps a history from now on. */
  record(): void {
    this.#history ??= new ScalingHistory(0);
    this.#dispatcher.watch = this;
  }

  /** Null for a model that has never scaled itself. */
  get history(): ScalingHistory | null {
    return this.#history;
  }

  /** Expected time from the start of a process until its worker is ready. */
  get startMs(): number {
    return this.#history?.startMs ?? 0;
  }

  /** The most calls that were queued or running in the last minute. */
  get mostCalls(): number {
    return Math.max(this.#calls, this.#peak.most(performance.now()));
  }

  /** Number of calls, jobs and orders that wait for a worker. */
  get waiting(): number {
    const { queued, hasUnroutedJobs } = this.#dispatcher;
    return queued + this.#orders.size + (hasUnroutedJobs ? 1 : 0);
  }

  came(): void {
    const nowMs = performance.now();
    this.#peak.note(this.#calls, nowMs);
    this.#history?.came(nowMs);
  }

  waits(): void {
    this.#onWait();
  }

  ran(runMs: number, calls: number): void {
    // A worker that runs several calls at once is for the policy one that is so many times as fast.
    const places = this.#generations.inForce.info?.concurrency ?? 1;
    this.#history?.ran(runMs / places, performance.now(), calls);
  }

  refused(): void {
    const order = this.#order(Infinity);
    this.#onWait();
    this.#orders.delete(order);
  }

  /** Counts `wait` as a call in line that can wait until `untilMs`: at zero, it starts a worker. */
  async counting<T>(untilMs: number, wait: () => Promise<T>): Promise<T> {
    const order = this.#order(untilMs);
    this.#onWait();
    try {
      return await wait();
    } finally {
      this.#orders.delete(order);
    }
  }

  /** Describes what waits, and how long the last of it may; null if nothing does. */
  line(nowMs: number): ScaledLine | null {
    const calls = this.waiting;
    if (calls === 0) return null;
    const { queueTimeout } = this.#generations.inForce.options;
    const newest = this.#dispatcher.findNewest();
    let last: Order = { sinceMs: nowMs, untilMs: Infinity }; // of due jobs it is not known
    if (newest !== null) last = { sinceMs: newest.inLineSinceMs, untilMs: newest.deadlineAtMs ?? Infinity };
    if (this.#orders.size > 0 && (newest === null || this.#lastOrder.sinceMs > last.sinceMs))
      last = this.#lastOrder;
    return {
      calls,
      lastSinceMs: last.sinceMs,
      lastUntilMs: Math.min(last.untilMs, last.sinceMs + queueTimeout),
    };
  }

  #order(untilMs: number): Order {
    const order = { sinceMs: performance.now(), untilMs };
    this.#orders.add(order);
    this.#lastOrder = order;
    return order;
  }

  get #calls(): number {
    const { queued, inFlight } = this.#dispatcher;
    return queued + inFlight;
  }
}

const SECONDS = 60;

/** The most calls that were queued or running at once in the last minute: a gauge for autoscalers that look now and then. */
export class LoadPeak {
  readonly #most = new Float64Array(SECONDS);
  #second = 0;

  /** So many calls are queued or running now. */
  note(calls: number, nowMs: number): void {
    const slot = this.#advance(nowMs);
    if (calls > (this.#most[slot] as number)) this.#most[slot] = calls;
  }

  /** The most that was noted in the last 60 s. */
  most(nowMs: number): number {
    this.#advance(nowMs);
    return Math.max(...this.#most);
  }

  /** Forgets what is older than a minute. Returns the place of the present second. */
  #advance(nowMs: number): number {
    const second = Math.floor(nowMs / 1000);
    const passed = Math.min(SECONDS, second - this.#second);
    for (let i = 0; i < passed; i += 1) this.#most[(second - i) % SECONDS] = 0;
    if (passed > 0) this.#second = second;
    return second % SECONDS;
  }
}
