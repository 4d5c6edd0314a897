/**
 * Learns from each reading: what the starts of each model take, since when more than a budget is used, and which workers were
 * seen within the budgets.
 */
import type { BudgetedFacts, BudgetedModel, BudgetedWorker } from './facts.js';
import { MEMORY } from './memory-text.js';
import type { MemoryReadings } from './readings.js';

export type Gathered = BudgetedFacts & { readonly model: BudgetedModel };

/** The most that a process was seen to hold of a pool: with its share of what it shares, and without. */
interface Peak {
  readonly sharedToo: number;
  readonly own: number;
}

interface Life {
  readonly peaks: Map<string, Peak>;
  /** The pools that were read since it is ready. */
  readonly readyIn: Set<string>;
}

export class Learner {
  readonly costs = new StartCosts();
  readonly #readings: MemoryReadings;
  readonly #overSince = new Map<string, number>();
  /** Workers whose memory was read within the budgets since they are ready. */
  readonly #proven = new Set<number>();
  /** Models that had such a worker. */
  readonly #well = new Set<string>();
  #lives: ReadonlyMap<number, Life> = new Map();

  constructor(readings: MemoryReadings) {
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

  learn(gathered: readonly Gathered[], nowMs: number): void {
    const lives = new Map<number, Life>();
    const readAtMs = new Map(this.#readings.pools.map((pool) => [pool.name, pool.readAtMs]));
    for (const { model, workers } of gathered) {
      const staying = workers.filter(({ state }) => state !== 'leaving');
      for (const worker of staying) {
        const life = this.#lives.get(worker.id) ?? { peaks: new Map(), readyIn: new Set() };
        lives.set(worker.id, life);
        this.#note(model.name, worker, life, staying.length === 1, readAtMs);
      }
    }
    this.#lives = lives;
    this.#noteOverruns(nowMs);
    this.#prove(gathered);
  }

  /** Learns a start's cost once its worker is ready. A reading that began before may have seen it without its model. */
  #note(
    model: string,
    { id, device, state, sinceMs }: BudgetedWorker,
    life: Life,
    isOnly: boolean,
    readAtMs: ReadonlyMap<string, number>,
  ): void {
    const isReady = state !== 'starting';
    for (const pool of this.#readings.poolsOf(device)) {
      const now = this.#held(id, pool);
      if (now === null) continue;
      const before = life.peaks.get(pool) ?? now;
      const peak = {
        sharedToo: Math.max(now.sharedToo, before.sharedToo),
        own: Math.max(now.own, before.own),
      };
      life.peaks.set(pool, peak);
      if (isReady) this.costs.learn(model, pool, isOnly, isOnly ? peak.sharedToo : peak.own);
      if (!isReady || life.readyIn.has(pool) || sinceMs >= (readAtMs.get(pool) ?? -Infinity)) continue;
      life.readyIn.add(pool);
      this.costs.learnReady(model, pool, now.own);
    }
  }

  /** Null if it was not read yet. */
  #held(id: number, pool: string): Peak | null {
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

  #prove(gathered: readonly Gathered[]): void {
    const ids = new Set(gathered.flatMap(({ workers }) => workers.map(({ id }) => id)));
    for (const id of this.#proven) if (!ids.has(id)) this.#proven.delete(id);
    if (this.#overSince.size > 0) return;
    const readAtMs = Math.min(...this.#readings.pools.map((pool) => pool.readAtMs));
    for (const { model, workers } of gathered)
      for (const { id, state, sinceMs } of workers) {
        if (state === 'starting' || sinceMs >= readAtMs) continue;
        this.#proven.add(id);
        this.#well.add(model.name);
      }
  }
}

export interface StartCost {
  readonly model: string;
  readonly pool: string;
  /** Null until its only worker was measured. */
  readonly firstBytes: number | null;
  /** Null until a worker was measured beside another one. */
  readonly moreBytes: number | null;
  /** The least that a worker held once it was ready: calls may have made others grow. */
  readonly readyBytes: number | null;
}

/**
 * The memory that a start of each model takes, learnt anew by each server: the most that a worker was seen to hold, while it
 * started too. A model's first worker also takes what its workers share.
 */
export class StartCosts {
  readonly #costs = new Map<string, StartCost>();

  /** A worker holds so many bytes. `isOnly`: its model has no other one. */
  learn(model: string, pool: string, isOnly: boolean, bytes: number): void {
    const key = keyOf(model, pool);
    const before = this.#costs.get(key) ?? newCost(model, pool);
    const name = isOnly ? 'firstBytes' : 'moreBytes';
    this.#costs.set(key, { ...before, [name]: Math.max(before[name] ?? 0, bytes) });
  }

  /** A worker has become ready, and holds so many bytes. */
  learnReady(model: string, pool: string, bytes: number): void {
    const key = keyOf(model, pool);
    const before = this.#costs.get(key) ?? newCost(model, pool);
    this.#costs.set(key, { ...before, readyBytes: Math.min(before.readyBytes ?? Infinity, bytes) });
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
}

function newCost(model: string, pool: string): StartCost {
  return { model, pool, firstBytes: null, moreBytes: null, readyBytes: null };
}

function keyOf(model: string, pool: string): string {
  return `${pool} ${model}`;
}
