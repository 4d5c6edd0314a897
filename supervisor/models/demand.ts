/**
 * The facts about one model on which the scaling policy decides: calls and orders that wait for a worker, the history of both,
 * and the workers that are there.
 * Before: the dispatcher reports its calls. After: `sizing.ts` asks the policy.
 */
import type { CallWatch, Dispatcher } from '../dispatch/dispatcher.js';
import { ScalingHistory } from '../scaling/history.js';
import type { ScaledWorker, ScalingFacts } from '../scaling/history.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { Slot } from '../slots/slot.js';
import type { Generations } from './generations.js';

/** Someone who waits for a worker without a call in line: a call whose app is not loaded, a warm-up, a load order. */
interface Order {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export class Demand implements CallWatch {
  /** Kept from when the model first scales itself; null before. */
  history: ScalingHistory | null = null;
  readonly #dispatcher: Dispatcher;
  readonly #generations: Generations;
  readonly #onWait: () => void;
  readonly #peak = new LoadPeak();
  readonly #orders = new Set<Order>();
  #lastOrder: Order = { sinceMs: -Infinity, untilMs: Infinity };

  /** `onWait` is called when calls wait that no worker can begin now. With `measures`, load is measured from the start. */
  constructor(dispatcher: Dispatcher, generations: Generations, measures: boolean, onWait: () => void) {
    this.#dispatcher = dispatcher;
    this.#generations = generations;
    this.#onWait = onWait;
    if (measures) dispatcher.watch = this;
  }

  /** Keeps a history from now on. */
  record(): void {
    this.history ??= new ScalingHistory(0);
    this.#dispatcher.watch = this;
  }

  /** Expected time from the start of a process until its worker is ready. */
  get startMs(): number {
    return this.history?.startMs ?? 0;
  }

  /** The most calls that were queued or running in the last minute. */
  get mostCalls(): number {
    return Math.max(this.#calls, this.#peak.most(performance.now()));
  }

  /** Number of calls, jobs and orders that wait for a worker. */
  get waiting(): number {
    const { queued, feed } = this.#dispatcher;
    return queued + this.#orders.size + (feed.needsApp ? 1 : 0);
  }

  came(): void {
    const nowMs = performance.now();
    this.#peak.note(this.#calls, nowMs);
    this.history?.came(nowMs);
  }

  waits(): void {
    this.#onWait();
  }

  ran(runMs: number, calls: number): void {
    // A worker that runs several calls at once is for the policy one that is so many times as fast.
    const places = this.#generations.inForce.info?.concurrency ?? 1;
    this.history?.ran(runMs / places, performance.now(), calls);
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
  line(nowMs: number): ScalingFacts['line'] {
    const calls = this.waiting;
    if (calls === 0) return null;
    const { queueTimeout } = this.#generations.inForce.options;
    const newest = this.#dispatcher.lines.findNewest();
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

/**
 * Counts each slot once, but for latched and failing ones, which may never have a worker. `isFree`: whether the worker holds
 * no call and none is on its way to it. A slot without a ready worker starts since its worker was or will be spawned; in
 * backoff, since its worker died.
 */
export function countWorkers(
  slots: readonly Slot[],
  isFree: (worker: WorkerHandle) => boolean,
  nowMs: number,
): Pick<ScalingFacts, 'ready' | 'startingSinceMs'> {
  const ready: ScaledWorker[] = [];
  const startingSinceMs: number[] = [];
  for (const slot of slots) {
    const { state, worker } = slot;
    if (slot.failure !== null) continue;
    if (worker?.state === 'ready' && state.name !== 'replacing') ready.push(asScaled(worker, isFree(worker)));
    else startingSinceMs.push(sinceMs(slot, nowMs));
  }
  return { ready, startingSinceMs };
}

/**
 * A worker that is frozen, or about to get a call, is not free: it counts as one that has just begun. One that runs several
 * calls at once counts as so many times as fast.
 */
function asScaled(worker: WorkerHandle, isFree: boolean): ScaledWorker {
  const { heldBatches, runningMs, places, isFrozen } = worker;
  if (worker.load === 0 && (isFrozen || !isFree))
    return { heldBatches: 1, runningMs: 0, isFrozen: isFrozen && isFree };
  return { heldBatches, runningMs: runningMs / places };
}

function sinceMs({ state, worker, lastDeath }: Slot, nowMs: number): number {
  if (state.name === 'backoff' && lastDeath !== null) return nowMs - (Date.now() - lastDeath.at.getTime());
  return worker === null || state.name === 'replacing' ? nowMs : nowMs - worker.uptimeMs;
}

/** Time until a worker is ready, if a start takes `startMs`: from the start that is nearest to its end, or from now. */
export function startLeftMs(slots: readonly Slot[], startMs: number, nowMs: number): number {
  const lefts = slots.map(({ state, worker }) => {
    if (state.name === 'latched') return startMs;
    if (state.name === 'backoff') return state.untilMs - nowMs + startMs;
    return worker === null || state.name === 'replacing' ? startMs : Math.max(0, startMs - worker.uptimeMs);
  });
  return lefts.length === 0 ? startMs : Math.min(...lefts);
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
