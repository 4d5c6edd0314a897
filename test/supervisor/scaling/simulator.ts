/**
 * Simulates a model whose workers come and go, with its own clock, the real batcher and an autoscaler: ours or a rule of others.
 * Input: calls and how long they run, the time of a start; output: worker-seconds and waits. It is deterministic.
 */
import { Batcher, sendAhead } from '../../../supervisor/dispatch/batcher.js';
import { Lines } from '../../../supervisor/dispatch/lines.js';
import { ServiceTime } from '../../../supervisor/dispatch/service-time.js';
import { SimulatedCall, SimulatedWorker, type SimulatedBatch } from '../dispatch/simulator.js';

export interface ScaledLoad {
  readonly name: string;
  /** In the order of time. */
  readonly arrivalsMs: readonly number[];
  /** Time of each call in a run, beside `perRunMs`. */
  readonly workMs: readonly number[];
  readonly perRunMs: number;
  readonly batchSize: number;
  /** Workers are counted until then. */
  readonly endMs: number;
}

export interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly startMs: number;
}

/** The model as an autoscaler sees it. */
export interface ScaledView {
  readonly nowMs: number;
  readonly ready: readonly SimulatedWorker[];
  readonly startingSinceMs: readonly number[];
  /** Calls that wait. */
  readonly queued: number;
  /** When the newest call came. */
  readonly lastCameMs: number;
  /** Integral of the calls that wait or run, over time. */
  readonly ongoingMs: number;
}

export interface Autoscaler {
  readonly name: string;
  /** Whether only an idle worker may leave; else a starting one goes first, and a busy one ends its run. */
  readonly isGentle: boolean;
  came(atMs: number): void;
  ran(runMs: number, nowMs: number, calls: number): void;
  started(startMs: number, nowMs: number): void;
  /** The wanted number of workers, and when to ask again. It is asked when a call has to wait, and when a worker is ready. */
  decide(view: ScaledView): { readonly wanted: number; readonly againAtMs: number };
}

export interface ScaledOutcome {
  readonly workerS: number;
  readonly p50WaitMs: number;
  readonly p99WaitMs: number;
  readonly spawnedAtMs: readonly number[];
  readonly mostWorkers: number;
  readonly workersAtEnd: number;
}

/** Decisions at one time that each ask for another at once; a policy that needs more does not settle. */
const MOST_STEPS = 100;

class ElasticWorker extends SimulatedWorker {
  readonly spawnedAtMs: number;
  readonly readyAtMs: number;
  isLeaving = false;

  constructor(clock: { nowMs: number }, startMs: number) {
    super(clock, () => 0xffff);
    this.spawnedAtMs = clock.nowMs;
    this.readyAtMs = clock.nowMs + startMs;
  }
}

export function simulateScaling(load: ScaledLoad, bounds: Bounds, autoscaler: Autoscaler): ScaledOutcome {
  return new Simulation(load, bounds, autoscaler).run();
}

class Simulation {
  readonly #load: ScaledLoad;
  readonly #bounds: Bounds;
  readonly #autoscaler: Autoscaler;
  readonly #clock = { nowMs: 0 };
  readonly #lines = new Lines<SimulatedCall>({ bytes: 0 });
  readonly #service = new ServiceTime();
  readonly #batcher: Batcher<SimulatedCall, ElasticWorker>;
  #starting: ElasticWorker[] = [];
  #ready: ElasticWorker[] = [];
  #leaving: ElasticWorker[] = [];
  readonly #waitsMs: number[] = [];
  readonly #spawnedAtMs: number[] = [];
  #mostWorkers = 0;
  #next = 0;
  #ongoing = 0;
  #ongoingMs = 0;
  #workerMs = 0;
  #alarmAtMs = Infinity;
  #askAtMs = 0;

  constructor(load: ScaledLoad, bounds: Bounds, autoscaler: Autoscaler) {
    this.#load = load;
    this.#bounds = bounds;
    this.#autoscaler = autoscaler;
    this.#batcher = new Batcher({ batchSize: load.batchSize, maxBatchDelayMs: 0 }, this.#service, sendAhead);
  }

  run(): ScaledOutcome {
    // A minimum is there from the begin.
    for (let i = 0; i < this.#bounds.min; i += 1) this.#becomeReady(this.#spawn(0));
    for (let atMs = 0; atMs < Infinity; atMs = this.#nextAtMs()) this.#step(atMs);
    const sorted = Float64Array.from(this.#waitsMs).sort();
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
    return {
      workerS: this.#workerMs / 1000,
      p50WaitMs: at(0.5),
      p99WaitMs: at(0.99),
      spawnedAtMs: this.#spawnedAtMs,
      mostWorkers: this.#mostWorkers,
      workersAtEnd: this.#starting.length + this.#ready.length,
    };
  }

  #step(atMs: number): void {
    const passedMs = atMs - this.#clock.nowMs;
    this.#ongoingMs += this.#ongoing * passedMs;
    this.#workerMs += (this.#starting.length + this.#ready.length + this.#leaving.length) * passedMs;
    this.#clock.nowMs = atMs;
    for (const worker of this.#ready) this.#endRun(worker);
    for (const worker of this.#leaving) this.#endRun(worker);
    if (this.#leaving.length > 0) this.#leaving = this.#leaving.filter(({ load }) => load > 0);
    const wasReady = this.#ready.length;
    if (this.#starting.length > 0) this.#endStarts();
    const came = this.#takeArrivals();
    if (this.#alarmAtMs <= atMs) this.#alarmAtMs = Infinity;
    this.#pump();
    const mustAsk = (came && this.#lines.length > 0) || this.#ready.length > wasReady;
    if (mustAsk || this.#askAtMs <= atMs) this.#ask();
  }

  #nextAtMs(): number {
    const isOver = this.#next >= this.#load.arrivalsMs.length && this.#ongoing === 0;
    if (isOver && this.#clock.nowMs >= this.#load.endMs) return Infinity;
    const arrivalMs = this.#load.arrivalsMs[this.#next] ?? Infinity;
    let atMs = Math.min(arrivalMs, this.#alarmAtMs, this.#askAtMs);
    for (const { readyAtMs } of this.#starting) atMs = Math.min(atMs, readyAtMs);
    for (const { held } of this.#ready) atMs = Math.min(atMs, held[0]?.endsAtMs ?? Infinity);
    for (const { held } of this.#leaving) atMs = Math.min(atMs, held[0]?.endsAtMs ?? Infinity);
    return isOver ? Math.min(atMs, this.#load.endMs) : atMs;
  }

  #endRun({ held }: ElasticWorker): void {
    const [batch] = held;
    const { nowMs } = this.#clock;
    if (batch === undefined || batch.endsAtMs > nowMs) return;
    held.shift();
    const runMs = nowMs - batch.startedAtMs;
    this.#ongoing -= batch.calls.length;
    this.#service.add(runMs, 0, batch.calls.length);
    this.#autoscaler.ran(runMs, nowMs, batch.calls.length);
    if (held[0] !== undefined) this.#begin(held[0]);
  }

  #endStarts(): void {
    for (const worker of this.#starting.filter(({ readyAtMs }) => readyAtMs <= this.#clock.nowMs)) {
      this.#starting.splice(this.#starting.indexOf(worker), 1);
      this.#becomeReady(worker);
    }
  }

  #becomeReady(worker: ElasticWorker): void {
    this.#ready.push(worker);
    this.#autoscaler.started(worker.readyAtMs - worker.spawnedAtMs, worker.readyAtMs);
  }

  #takeArrivals(): boolean {
    const before = this.#next;
    for (;;) {
      const atMs = this.#load.arrivalsMs[this.#next] ?? Infinity;
      if (atMs > this.#clock.nowMs) return this.#next > before;
      this.#lines.push(new SimulatedCall(this.#next, { atMs }), atMs);
      this.#autoscaler.came(atMs);
      this.#next += 1;
      this.#ongoing += 1;
    }
  }

  #pump(): void {
    for (;;) {
      const { worker, calls, againAtMs } = this.#batcher.plan(this.#lines, this.#ready, this.#clock.nowMs);
      if (worker === null) {
        this.#alarmAtMs = Math.min(this.#alarmAtMs, againAtMs ?? Infinity);
        return;
      }
      for (const call of calls) this.#lines.remove(call);
      const batch = {
        worker: 0,
        calls,
        givenAtMs: this.#clock.nowMs,
        startedAtMs: -1,
        endsAtMs: Infinity,
      };
      worker.held.push(batch);
      if (worker.held.length === 1) this.#begin(batch);
    }
  }

  #begin(batch: SimulatedBatch): void {
    const { nowMs } = this.#clock;
    const { perRunMs, workMs } = this.#load;
    batch.startedAtMs = nowMs;
    batch.endsAtMs = nowMs + batch.calls.reduce((ms, { index }) => ms + (workMs[index] as number), perRunMs);
    for (const { atMs } of batch.calls) this.#waitsMs.push(nowMs - atMs);
  }

  #ask(): void {
    for (let step = 0; step < MOST_STEPS; step += 1) {
      const before = this.#starting.length + this.#ready.length;
      const { wanted, againAtMs } = this.#autoscaler.decide(this.#view());
      this.#askAtMs = againAtMs;
      this.#scaleTo(Math.min(this.#bounds.max, Math.max(this.#bounds.min, wanted)));
      if (this.#starting.length + this.#ready.length === before || againAtMs > this.#clock.nowMs) return;
    }
    throw new Error(`${this.#autoscaler.name} does not settle`);
  }

  #view(): ScaledView {
    return {
      nowMs: this.#clock.nowMs,
      ready: this.#ready,
      startingSinceMs: this.#starting.map(({ spawnedAtMs }) => spawnedAtMs),
      queued: this.#lines.length,
      lastCameMs: this.#load.arrivalsMs[this.#next - 1] ?? -Infinity,
      ongoingMs: this.#ongoingMs,
    };
  }

  #scaleTo(wanted: number): void {
    let have = this.#starting.length + this.#ready.length;
    for (; have < wanted; have += 1) {
      this.#starting.push(this.#spawn(this.#bounds.startMs));
      this.#spawnedAtMs.push(this.#clock.nowMs);
    }
    for (; have > wanted && this.#letGo(); have -= 1);
    this.#mostWorkers = Math.max(this.#mostWorkers, have);
  }

  #spawn(startMs: number): ElasticWorker {
    return new ElasticWorker(this.#clock, startMs);
  }

  #letGo(): boolean {
    const { isGentle } = this.#autoscaler;
    if (!isGentle && this.#starting.pop() !== undefined) return true;
    const idle = this.#ready.findLastIndex(({ load }) => load === 0);
    if (idle < 0 && isGentle) return false;
    const [gone] = this.#ready.splice(idle < 0 ? this.#ready.length - 1 : idle, 1);
    if (gone !== undefined && gone.load > 0) this.#leaving.push(gone);
    return gone !== undefined;
  }
}
