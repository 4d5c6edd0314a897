/**
 * Simulates a model's queue and workers with its own clock and the real batcher. Input: arrivals, run times and workers;
 * output: starts, batches and waits. There is no transport: the results show the rule alone.
 */
import {
  Batcher,
  type BatchRules,
  type BatchWorker,
  type Plan,
  sendAhead,
} from '../../../supervisor/dispatch/batcher.js';
import { Lines, Waiting } from '../../../supervisor/dispatch/lines.js';
import { ServiceTime } from '../../../supervisor/dispatch/service-time.js';

export interface Arrival {
  readonly atMs: number;
  readonly route?: string;
  readonly deadlineAtMs?: number | null;
}

export interface Load {
  /** In the order of their times. */
  readonly arrivals: readonly Arrival[];
  /** Run time of a batch of so many calls. */
  readonly runMs: (calls: number) => number;
  readonly workers: number;
  readonly rules: BatchRules;
  /** Most calls of a route that begin together, set by the app. */
  readonly maxBatch?: (route: string) => number;
  /** The batcher begins with what runs cost, which it has to learn otherwise. */
  readonly isKnown?: boolean;
}

export interface SimulatedState {
  readonly nowMs: number;
  readonly lines: Lines<SimulatedCall>;
  readonly workers: readonly SimulatedWorker[];
}

/** Called at every step, so that a test can check each. */
export interface Watcher {
  /** Everything that is to be done at this time has been done. */
  onSettled?(state: SimulatedState): void;
  /** Called with each plan of the batcher, before it is carried out. */
  onPlan?(plan: Plan<SimulatedCall, SimulatedWorker>, state: SimulatedState): void;
  /** The run of a batch ends. Calls that a closed loop sends then; none otherwise. */
  onEnded?(batch: SimulatedBatch, nowMs: number): readonly Arrival[];
}

export class SimulatedCall extends Waiting {
  readonly index: number;
  readonly atMs: number;
  readonly route: string;
  readonly deadlineAtMs: number | null;
  readonly isConversation = false;
  readonly bodyBytes = 0;
  /** -1 until its batch begins. */
  startedAtMs = -1;
  endedAtMs = -1;

  constructor(index: number, { atMs, route = '/', deadlineAtMs = null }: Arrival) {
    super();
    this.index = index;
    this.atMs = atMs;
    this.route = route;
    this.deadlineAtMs = deadlineAtMs;
  }
}

export interface SimulatedBatch {
  readonly worker: number;
  readonly calls: readonly SimulatedCall[];
  /** When the worker was given it; it may have been busy then. */
  readonly givenAtMs: number;
  startedAtMs: number;
  endsAtMs: number;
}

export class SimulatedWorker implements BatchWorker {
  readonly held: SimulatedBatch[] = [];
  readonly isEngaged = false;
  readonly places = 1;
  readonly maxBatch: (route: string) => number;
  readonly #clock: { nowMs: number };

  constructor(clock: { nowMs: number }, maxBatch: (route: string) => number) {
    this.#clock = clock;
    this.maxBatch = maxBatch;
  }

  get load(): number {
    return this.held.reduce((sum, { calls }) => sum + calls.length, 0);
  }

  readonly isFrozen = false;

  get heldBatches(): number {
    return this.held.length;
  }

  get runningMs(): number {
    const [first] = this.held;
    return first === undefined ? 0 : this.#clock.nowMs - first.startedAtMs;
  }
}

export interface Simulated {
  readonly calls: readonly SimulatedCall[];
  readonly batches: readonly SimulatedBatch[];
  readonly dropped: readonly SimulatedCall[];
}

/** Runs the load to its end. */
export function simulate(load: Load, watcher: Watcher = {}): Simulated {
  return new Simulation(load, watcher).run();
}

class Simulation {
  readonly #load: Load;
  readonly #watcher: Watcher;
  readonly #service = new ServiceTime();
  readonly #lines = new Lines<SimulatedCall>({ bytes: 0 });
  readonly #clock = { nowMs: 0 };
  readonly #workers: readonly SimulatedWorker[];
  readonly #batcher: Batcher<SimulatedCall, SimulatedWorker>;
  readonly #calls: SimulatedCall[] = [];
  readonly #batches: SimulatedBatch[] = [];
  readonly #dropped: SimulatedCall[] = [];
  readonly #coming: Arrival[];
  #next = 0;
  #alarmAtMs = Infinity;

  constructor(load: Load, watcher: Watcher) {
    this.#load = load;
    this.#watcher = watcher;
    const { maxBatch = () => 0xffff } = load;
    this.#workers = Array.from({ length: load.workers }, () => new SimulatedWorker(this.#clock, maxBatch));
    this.#batcher = new Batcher(load.rules, this.#service, sendAhead);
    this.#coming = [...load.arrivals];
    if (load.isKnown === true) this.#teach();
  }

  run(): Simulated {
    for (let atMs = this.#nextAtMs(); atMs < Infinity; atMs = this.#nextAtMs()) {
      this.#clock.nowMs = atMs;
      this.#endBatches(atMs);
      this.#takeArrivals(atMs);
      if (this.#alarmAtMs <= atMs) this.#alarmAtMs = Infinity;
      this.#pump(atMs);
      this.#watcher.onSettled?.(this.#state);
    }
    return { calls: this.#calls, batches: this.#batches, dropped: this.#dropped };
  }

  get #state(): SimulatedState {
    return { nowMs: this.#clock.nowMs, lines: this.#lines, workers: this.#workers };
  }

  /** As if batches of all sizes had run before. */
  #teach(): void {
    const { runMs, rules } = this.#load;
    for (let i = 0; i < 10; i += 1) {
      const calls = i % 2 === 0 ? 1 : rules.batchSize;
      this.#service.add(runMs(calls), 0, calls);
    }
  }

  #nextAtMs(): number {
    let atMs = Math.min(this.#coming[this.#next]?.atMs ?? Infinity, this.#alarmAtMs);
    for (const { held } of this.#workers) atMs = Math.min(atMs, held[0]?.endsAtMs ?? Infinity);
    return atMs;
  }

  #endBatches(nowMs: number): void {
    for (const { held } of this.#workers) {
      const [batch] = held;
      if (batch === undefined || batch.endsAtMs > nowMs) continue;
      held.shift();
      for (const call of batch.calls) call.endedAtMs = nowMs;
      this.#service.add(batch.endsAtMs - batch.startedAtMs, 0, batch.calls.length);
      if (held[0] !== undefined) this.#start(held[0], nowMs);
      const more = this.#watcher.onEnded?.(batch, nowMs) ?? [];
      for (const arrival of more) this.#expect(arrival);
    }
  }

  #expect(arrival: Arrival): void {
    let index = this.#coming.length;
    while (index > this.#next && (this.#coming[index - 1] as Arrival).atMs > arrival.atMs) index -= 1;
    this.#coming.splice(index, 0, arrival);
  }

  #takeArrivals(nowMs: number): void {
    for (let next = this.#coming[this.#next]; next !== undefined; next = this.#coming[this.#next]) {
      if (next.atMs > nowMs) return;
      this.#next += 1;
      const call = new SimulatedCall(this.#calls.length, next);
      this.#calls.push(call);
      this.#lines.push(call, nowMs);
    }
  }

  #pump(nowMs: number): void {
    for (;;) {
      const plan = this.#batcher.plan(this.#lines, this.#workers, nowMs);
      this.#watcher.onPlan?.(plan, this.#state);
      const { worker, calls, late, againAtMs } = plan;
      for (const call of late) this.#lines.remove(call);
      this.#dropped.push(...late);
      if (worker === null) {
        this.#alarmAtMs = Math.min(this.#alarmAtMs, againAtMs ?? Infinity);
        return;
      }
      if (calls.length > 0) this.#give(worker, calls, nowMs);
    }
  }

  #give(worker: SimulatedWorker, calls: readonly SimulatedCall[], nowMs: number): void {
    for (const call of calls) this.#lines.remove(call);
    const index = this.#workers.indexOf(worker);
    const batch = { worker: index, calls, givenAtMs: nowMs, startedAtMs: -1, endsAtMs: Infinity };
    this.#batches.push(batch);
    worker.held.push(batch);
    if (worker.held.length === 1) this.#start(batch, nowMs);
  }

  #start(batch: SimulatedBatch, nowMs: number): void {
    batch.startedAtMs = nowMs;
    batch.endsAtMs = nowMs + this.#load.runMs(batch.calls.length);
    for (const call of batch.calls) call.startedAtMs = nowMs;
  }
}

/** Times of `count` calls that come by chance, `perMs` of them in a millisecond on average. */
export function poisson(count: number, perMs: number, random: () => number): Arrival[] {
  let atMs = 0;
  return Array.from({ length: count }, () => {
    atMs -= Math.log(1 - random()) / perMs;
    return { atMs };
  });
}
