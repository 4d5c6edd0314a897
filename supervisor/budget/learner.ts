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

/** Memory of one pool that a start of a model takes, learnt anew by each server. */
export interface StartCost {
  readonly model: string;
  readonly pool: string;
  /** The most that its only worker was seen to hold, what its workers share included; null until one was measured. */
  firstBytes: number | null;
  /** The most that a worker was seen to hold beside another one; null until one was measured. */
  moreBytes: number | null;
  /** The least that a worker held once it was ready: calls may have made others grow. */
  readyBytes: number | null;
}

const UNKNOWN = { firstBytes: null, moreBytes: null, readyBytes: null };

export class Learner {
  /** Since when more than the budget of a pool is used. */
  readonly overSinceMs = new Map<string, number>();
  /** Workers whose memory was read within the budgets since they are ready. */
  readonly proven = new Set<number>();
  /** Models that had such a worker. */
  readonly well = new Set<string>();
  readonly #readings: Readings;
  readonly #costs = new Map<string, StartCost>();
  /** For each process, its peaks by pool. */
  #peaks: ReadonlyMap<number, Map<string, Peak>> = new Map();

  constructor(readings: Readings) {
    this.#readings = readings;
  }

  /** Costs of starts that were learnt so far. */
  get costs(): StartCost[] {
    return [...this.#costs.values()];
  }

  /** Memory that a start takes, the most that was seen; null if it is not known. */
  findCost(model: string, pool: string, isFirst: boolean): number | null {
    const { firstBytes = null, moreBytes = null } = this.#costs.get(keyOf(model, pool)) ?? {};
    return isFirst ? (firstBytes ?? moreBytes) : (moreBytes ?? firstBytes);
  }

  /** The least with which a worker was ready; null if it is not known. */
  findLeast(model: string, pool: string): number | null {
    return this.#costs.get(keyOf(model, pool))?.readyBytes ?? null;
  }

  /** A model of this name is another one from now on. */
  forget(model: string): void {
    for (const [key, cost] of this.#costs) if (cost.model === model) this.#costs.delete(key);
    this.well.delete(model);
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
    for (const { name: pool, readAtMs } of this.#readings.pools) {
      const now = names.includes(pool) ? this.#held(id, pool) : null;
      if (now === null) continue;
      const before = peaks.get(pool) ?? { ...now, isReady: false };
      const isReady = state !== 'starting' && sinceMs < readAtMs;
      const sharedToo = Math.max(now.sharedToo, before.sharedToo);
      const own = Math.max(now.own, before.own);
      peaks.set(pool, { sharedToo, own, isReady: before.isReady || isReady });
      if (state === 'starting') continue;
      const cost = this.#costs.get(keyOf(model, pool)) ?? { ...UNKNOWN, model, pool };
      this.#costs.set(keyOf(model, pool), cost);
      if (isOnly) cost.firstBytes = Math.max(cost.firstBytes ?? 0, sharedToo);
      else cost.moreBytes = Math.max(cost.moreBytes ?? 0, own);
      if (isReady && !before.isReady) cost.readyBytes = Math.min(cost.readyBytes ?? Infinity, now.own);
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
      if (ownBytes <= limitBytes) this.overSinceMs.delete(name);
      else if (!this.overSinceMs.has(name)) this.overSinceMs.set(name, nowMs);
    }
  }

  #prove(models: readonly BudgetedFacts[]): void {
    const workers = models.flatMap((model) => model.workers);
    const ids = new Set(workers.map(({ id }) => id));
    for (const id of this.proven) if (!ids.has(id)) this.proven.delete(id);
    if (this.overSinceMs.size > 0) return;
    const readAtMs = Math.min(...this.#readings.pools.map((pool) => pool.readAtMs));
    for (const { id, model, state, sinceMs } of workers) {
      if (state === 'starting' || sinceMs >= readAtMs) continue;
      this.proven.add(id);
      this.well.add(model);
    }
  }
}

function keyOf(model: string, pool: string): string {
  return `${pool} ${model}`;
}
