/**
 * Learns from each reading: what the starts of each model take, since when more than a budget is used, and which workers were
 * seen within the budgets.
 */
import { MEMORY, type BudgetedFacts, type BudgetedWorker } from './facts.js';
import type { Readings } from './readings.js';

/** The most that a process was seen to hold of a pool. */
interface Peak {
  /** With its share of what it shares with others. */
  readonly sharedToo: number;
  readonly own: number;
  /** Whether it was read since the worker is ready. */
  readonly isReady: boolean;
}

export class Learner {
  readonly costs = new StartCosts();
  readonly #readings: Readings;
  readonly #overSince = new Map<string, number>();
  /** Workers whose memory was read within the budgets since they are ready. */
  readonly #proven = new Set<number>();
  /** Models that had such a worker. */
  readonly #well = new Set<string>();
  /** For each process, its peaks by pool. */
  #peaks: ReadonlyMap<number, Map<string, Peak>> = new Map();

  constructor(readings: Readings) {
    this.#readings = readings;
  }

  overSinceMs(pool: string): number | null {
    return this.#overSince.get(pool) ?? null;
  }

  isProven(id: number): boolean {
    return this.#proven.has(id);
  }

  wasWell(model: string): boolean {
    return this.#well.has(model);
  }

  /** A model of this name is another one from now on. */
  forget(model: string): void {
    this.costs.forget(model);
    this.#well.delete(model);
  }

  learn(models: readonly BudgetedFacts[], nowMs: number): void {
    const peaks = new Map<number, Map<string, Peak>>();
    for (const { workers } of models) {
      const staying = workers.filter(({ state }) => state !== 'leaving');
      for (const worker of staying) {
        const ofWorker = this.#peaks.get(worker.id) ?? new Map<string, Peak>();
        peaks.set(worker.id, ofWorker);
        this.#note(worker, ofWorker, staying.length === 1);
      }
    }
    this.#peaks = peaks;
    this.#noteOverruns(nowMs);
    this.#prove(models);
  }

  /** Learns a start's cost once its worker is ready. A reading that began before may have seen it without its model. */
  #note(
    { id, model, device, state, sinceMs }: BudgetedWorker,
    peaks: Map<string, Peak>,
    isOnly: boolean,
  ): void {
    const names = this.#readings.poolsOf(device);
    for (const { name, readAtMs } of this.#readings.pools) {
      const now = names.includes(name) ? this.#held(id, name) : null;
      if (now === null) continue;
      const before = peaks.get(name) ?? { ...now, isReady: false };
      const isReady = state !== 'starting' && sinceMs < readAtMs;
      const sharedToo = Math.max(now.sharedToo, before.sharedToo);
      const own = Math.max(now.own, before.own);
      peaks.set(name, { sharedToo, own, isReady: before.isReady || isReady });
      if (state !== 'starting') this.costs.learn(model, name, isOnly, isOnly ? sharedToo : own);
      if (isReady && !before.isReady) this.costs.learnReady(model, name, now.own);
    }
  }

  /** Null if it was not read yet. */
  #held(id: number, pool: string): Omit<Peak, 'isReady'> | null {
    if (pool === MEMORY) {
      const memory = this.#readings.memoryOf(id);
      return memory === null ? null : { sharedToo: memory.pssBytes, own: memory.privateBytes };
    }
    const bytes = this.#readings.bytesOf(id).get(pool);
    return bytes === undefined ? null : { sharedToo: bytes, own: bytes };
  }

  #noteOverruns(nowMs: number): void {
    for (const { name, ownBytes, limitBytes } of this.#readings.pools) {
      if (ownBytes <= limitBytes) this.#overSince.delete(name);
      else if (!this.#overSince.has(name)) this.#overSince.set(name, nowMs);
    }
  }

  #prove(models: readonly BudgetedFacts[]): void {
    const workers = models.flatMap((model) => model.workers);
    const ids = new Set(workers.map(({ id }) => id));
    for (const id of this.#proven) if (!ids.has(id)) this.#proven.delete(id);
    if (this.#overSince.size > 0) return;
    const readAtMs = Math.min(...this.#readings.pools.map((pool) => pool.readAtMs));
    for (const { id, model, state, sinceMs } of workers) {
      if (state === 'starting' || sinceMs >= readAtMs) continue;
      this.#proven.add(id);
      this.#well.add(model);
    }
  }
}

export interface StartCost {
  readonly model: string;
  readonly pool: string;
  /** Null until its only worker was measured. */
  firstBytes: number | null;
  /** Null until a worker was measured beside another one. */
  moreBytes: number | null;
  /** The least that a worker held once it was ready: calls may have made others grow. */
  readyBytes: number | null;
}

/**
 * The memory that a start of each model takes, learnt anew by each server: the most that a worker was seen to hold, while it
 * started too. A model's first worker also takes what its workers share.
 */
export class StartCosts {
  readonly #costs = new Map<string, StartCost>();

  /** A worker holds so many bytes. `isOnly`: its model has no other one. */
  learn(model: string, pool: string, isOnly: boolean, bytes: number): void {
    const cost = this.#of(model, pool);
    if (isOnly) cost.firstBytes = Math.max(cost.firstBytes ?? 0, bytes);
    else cost.moreBytes = Math.max(cost.moreBytes ?? 0, bytes);
  }

  /** A worker has become ready, and holds so many bytes. */
  learnReady(model: string, pool: string, bytes: number): void {
    const cost = this.#of(model, pool);
    cost.readyBytes = Math.min(cost.readyBytes ?? Infinity, bytes);
  }

  /** Null if it is not known. */
  find(model: string, pool: string, isFirst: boolean): number | null {
    const { firstBytes = null, moreBytes = null } = this.#costs.get(keyOf(model, pool)) ?? {};
    return isFirst ? (firstBytes ?? moreBytes) : (moreBytes ?? firstBytes);
  }

  /** The least with which a worker was ready; null if it is not known. */
  findLeast(model: string, pool: string): number | null {
    return this.#costs.get(keyOf(model, pool))?.readyBytes ?? null;
  }

  forget(model: string): void {
    for (const [key, cost] of this.#costs) if (cost.model === model) this.#costs.delete(key);
  }

  all(): StartCost[] {
    return [...this.#costs.values()];
  }

  #of(model: string, pool: string): StartCost {
    const key = keyOf(model, pool);
    const cost = this.#costs.get(key) ?? { model, pool, firstBytes: null, moreBytes: null, readyBytes: null };
    this.#costs.set(key, cost);
    return cost;
  }
}

function keyOf(model: string, pool: string): string {
  return `${pool} ${model}`;
}
