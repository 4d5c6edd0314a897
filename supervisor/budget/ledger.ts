/** The books of the memory budget: models, starts that wait or are under way, costs; gathers the facts for the decision. */
import type { BudgetedFacts, BudgetedModel, BudgetedWorker, Expendables } from './budgeted.js';
import type { BudgetFacts, HeldWorker, Holder, Step, WaitingStart } from './facts.js';
import { Leavers } from './leavers.js';
import type { RoomStart } from './memory-room.js';
import { MEMORY } from './memory-text.js';
import type { Readings } from './readings.js';
import { StartCosts } from './start-costs.js';

/** A start that waits, or is under way. */
export interface StartEntry {
  readonly start: RoomStart;
  readonly sinceMs: number;
  /** What it will take of each pool, as far as that is known; null while it waits. */
  granted: ReadonlyMap<string, number> | null;
  isLogged: boolean;
}

/** More than any spare process of our own runtimes. */
const SPARE_BYTES = 64 * 1024 ** 2;

type Gathered = BudgetedFacts & { readonly model: BudgetedModel };

export class Ledger {
  readonly costs = new StartCosts();
  readonly #readings: Readings;
  readonly #expendables: Expendables;
  readonly #models = new Set<BudgetedModel>();
  readonly #entries = new Map<RoomStart, StartEntry>();
  /** Workers whose memory was read within the budget since they are ready. */
  readonly #proven = new Set<number>();
  readonly #overSince = new Map<string, number>();
  /** The models of the workers that were there at the last look. */
  #present: ReadonlyMap<number, string> = new Map();

  constructor(readings: Readings, expendables: Expendables) {
    this.#readings = readings;
    this.#expendables = expendables;
  }

  add(model: BudgetedModel): void {
    this.#models.add(model);
  }

  /** Its costs are forgotten: another one may come by this name. */
  remove(model: BudgetedModel): void {
    this.#models.delete(model);
    this.costs.forget(model.name);
  }

  enter(start: RoomStart): void {
    this.#entries.set(start, { start, sinceMs: performance.now(), granted: null, isLogged: false });
  }

  leave(start: RoomStart): void {
    this.#entries.delete(start);
  }

  entryOf(start: RoomStart): StartEntry | null {
    return this.#entries.get(start) ?? null;
  }

  isGranted(start: RoomStart): boolean {
    return this.entryOf(start)?.granted != null;
  }

  get isAnyWaiting(): boolean {
    return [...this.#entries.values()].some(({ granted }) => granted === null);
  }

  /** Whether a start is under way or a worker leaves. */
  get isMoving(): boolean {
    const nowMs = performance.now();
    const isUnderWay = [...this.#entries.values()].some(({ granted }) => granted !== null);
    return isUnderWay || this.#gather(nowMs).some(({ workers }) => workers.some(({ state }) => state === 'leaving'));
  }

  /** The processes of all workers. */
  get ids(): number[] {
    return this.#gather(performance.now()).flatMap(({ workers }) => workers.map(({ id }) => id));
  }

  modelOf(id: number): BudgetedModel | null {
    const found = this.#gather(performance.now()).find(({ workers }) => workers.some((one) => one.id === id));
    return found?.model ?? null;
  }

  get hasRoomForSpare(): boolean {
    const host = this.#readings.pools.find(({ name }) => name === MEMORY);
    return host === undefined || host.limitBytes - host.usedBytes >= SPARE_BYTES;
  }

  /** What each model holds of a pool, the largest first. */
  holders(pool: string): Holder[] {
    return this.#gather(performance.now())
      .map(({ model, workers }) => ({ model: model.name, bytes: this.#sum(workers, pool) }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes);
  }

  grant(entry: StartEntry): void {
    const { start } = entry;
    const isFirst = this.#countOf(start.model) === 0;
    entry.granted = known(this.#needsOf(start, isFirst));
    for (const card of this.#readings.cards) if (card.isOf(start.device)) card.starts(() => start.pid());
  }

  /** Learns what workers take, from the last reading. */
  learn(): void {
    const nowMs = performance.now();
    for (const { model, workers } of this.#gather(nowMs)) {
      const staying = workers.filter(({ state }) => state !== 'leaving');
      for (const worker of staying)
        if (worker.state !== 'starting') this.#learn(model.name, worker, staying.length === 1);
    }
    for (const { name, ownBytes, limitBytes } of this.#readings.pools) {
      if (ownBytes <= limitBytes) this.#overSince.delete(name);
      else if (!this.#overSince.has(name)) this.#overSince.set(name, nowMs);
    }
    this.#prove(nowMs);
  }

  #learn(model: string, { id, device }: BudgetedWorker, isOnly: boolean): void {
    for (const pool of this.#readings.poolsOf(device)) {
      const memory = this.#readings.memoryOf(id);
      const inHost = isOnly ? memory?.pssBytes : memory?.privateBytes;
      const bytes = pool === MEMORY ? inHost : this.#readings.bytesOf(id).get(pool);
      if (bytes !== undefined) this.costs.learn(model, pool, isOnly, bytes);
    }
  }

  #prove(nowMs: number): void {
    const { pools } = this.#readings;
    const readAtMs = Math.min(...pools.map((pool) => pool.readAtMs));
    const workers = this.#gather(nowMs).flatMap((model) => model.workers);
    const ids = new Set(workers.map(({ id }) => id));
    for (const id of this.#proven) if (!ids.has(id)) this.#proven.delete(id);
    if (this.#overSince.size > 0) return;
    for (const { id, state, sinceMs } of workers)
      if (state !== 'starting' && sinceMs < readAtMs) this.#proven.add(id);
  }

  gather(nowMs: number): BudgetFacts<StartEntry> {
    const gathered = this.#gather(nowMs);
    this.#noteDeaths(gathered, nowMs);
    return {
      nowMs,
      pools: this.#readings.pools.map((pool) => ({
        ...pool,
        overSinceMs: this.#overSince.get(pool.name) ?? null,
      })),
      promised: this.#promised(),
      starts: this.#waiting(gathered),
      workers: [...gathered.flatMap((model) => this.#held(model)), ...this.#ghosts()],
      models: gathered.map(({ model: { name }, ...facts }) => ({ name, ...facts })),
      expendables: this.#expendables.ids.map((id) => ({ id, bytes: this.#readings.bytesOf(id) })),
    };
  }

  /** One idle worker leaves for a start on this device; none if no model can spare one. */
  chooseOne(device: string, model: string): Step<StartEntry>[] {
    const facts = { ...this.gather(performance.now()), expendables: [] };
    const name = this.#readings.poolsOf(device).at(-1);
    const pool = facts.pools.find((one) => one.name === name);
    if (pool === undefined) return [];
    const needs = new Map([[pool.name, 1]]);
    const demand = { model, sinceMs: facts.nowMs, needs, takesTurns: false, queueTimeoutMs: Infinity };
    const { limitBytes, usedBytes } = pool;
    return new Leavers(facts).choose(demand, needs).map(({ id, rule, ms }) => {
      const why = { rule, ms, pool: pool.name, limitBytes, usedBytes, needBytes: null, forModel: model };
      return { kind: 'leave', id, why };
    });
  }

  #gather(nowMs: number): Gathered[] {
    return Array.from(this.#models, (model) => ({ model, ...model.facts(nowMs) }));
  }

  #held({ model: { name }, workers }: Gathered): HeldWorker[] {
    return workers.map((worker) => ({
      ...worker,
      model: name,
      bytes: this.#readings.bytesOf(worker.id),
      isProven: this.#proven.has(worker.id),
    }));
  }

  /** Memory of GPUs that the driver has not given back yet. */
  #ghosts(): HeldWorker[] {
    return this.#readings.cards.flatMap(({ name, ghosts }) =>
      ghosts.map(({ id, model, bytes, diedAtMs }) => ({
        id,
        model,
        bytes: new Map([[name, bytes]]),
        state: 'leaving' as const,
        sinceMs: diedAtMs,
        idleSinceMs: diedAtMs,
        isProven: true,
      })),
    );
  }

  #noteDeaths(gathered: readonly Gathered[], nowMs: number): void {
    const present = new Map(
      gathered.flatMap(({ model, workers }) => workers.map(({ id }) => [id, model.name] as const)),
    );
    for (const [id, model] of this.#present)
      if (!present.has(id)) for (const card of this.#readings.cards) card.died(id, model, nowMs);
    this.#present = present;
  }

  /** What the starts under way have not taken yet. */
  #promised(): Map<string, number> {
    const promised = new Map<string, number>();
    for (const { start, granted } of this.#entries.values()) {
      const pid = start.pid();
      const taken = pid === null ? null : this.#readings.bytesOf(pid);
      for (const [pool, need] of granted ?? []) {
        const left = Math.max(0, need - (taken?.get(pool) ?? 0));
        promised.set(pool, (promised.get(pool) ?? 0) + left);
      }
    }
    return promised;
  }

  #waiting(gathered: readonly Gathered[]): WaitingStart<StartEntry>[] {
    const counts = new Map(gathered.map(({ model: { name } }) => [name, this.#countOf(name, gathered)]));
    const waiting = [...this.#entries.values()].filter(
      ({ start, granted }) => granted === null && !(start.device !== 'cpu' && this.#readings.isBlind),
    );
    return waiting.map((entry) => {
      const { start, sinceMs } = entry;
      const { model, afterLeaving, isRenewal } = start;
      const facts = gathered.find((one) => one.model.name === model);
      const count = counts.get(model) ?? 0;
      if (!isRenewal) counts.set(model, count + 1);
      const isExtra = count >= Math.max(1, facts?.least ?? 1);
      const needs = this.#needsOf(start, count === 0);
      const kind = isRenewal ? 'renewal' : isExtra ? 'extra' : 'first';
      return { start: entry, model, sinceMs, needs, kind, hasCallers: facts?.hasCallers ?? false, afterLeaving };
    });
  }

  /** Workers of the model that stay, and its starts under way. */
  #countOf(name: string, gathered: readonly Gathered[] = this.#gather(performance.now())): number {
    const workers = gathered.find(({ model }) => model.name === name)?.workers ?? [];
    const coming = [...this.#entries.values()].filter(
      ({ start, granted }) => start.model === name && granted !== null && start.pid() === null,
    );
    return workers.filter(({ state }) => state !== 'leaving').length + coming.length;
  }

  /** At most the whole pool: its worker may have grown by its calls. */
  #needsOf({ model, device }: RoomStart, isFirst: boolean): Map<string, number | null> {
    const limits = new Map(this.#readings.pools.map(({ name, limitBytes }) => [name, limitBytes]));
    return new Map(
      this.#readings.poolsOf(device).map((pool) => {
        const bytes = this.costs.find(model, pool, isFirst);
        return [pool, bytes === null ? null : Math.min(bytes, limits.get(pool) ?? bytes)];
      }),
    );
  }

  #sum(workers: readonly BudgetedWorker[], pool: string): number {
    return workers.reduce((sum, { id }) => sum + (this.#readings.bytesOf(id).get(pool) ?? 0), 0);
  }
}

function known(needs: ReadonlyMap<string, number | null>): Map<string, number> {
  return new Map([...needs].map(([pool, bytes]) => [pool, bytes ?? 0]));
}
