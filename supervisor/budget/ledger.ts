/** The books of the memory budget: models, starts that wait or are under way, costs; gathers the facts for the decision. */
import type { BudgetedModel, BudgetedWorker, Expendables } from './budgeted.js';
import type { BudgetFacts, HeldWorker, Holder, Step, WaitingStart } from './facts.js';
import { Learner, type Gathered } from './learner.js';
import { Leavers } from './leavers.js';
import type { RoomStart } from './memory-room.js';
import { MEMORY } from './memory-text.js';
import type { MemoryReadings } from './readings.js';
import type { StartCost } from './start-costs.js';

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

export class Ledger {
  readonly #learner: Learner;
  readonly #readings: MemoryReadings;
  readonly #expendables: Expendables;
  readonly #models = new Set<BudgetedModel>();
  readonly #entries = new Map<RoomStart, StartEntry>();
  /** The models of the workers that were there at the last look. */
  #present: ReadonlyMap<number, string> = new Map();

  constructor(readings: MemoryReadings, expendables: Expendables) {
    this.#readings = readings;
    this.#learner = new Learner(readings);
    this.#expendables = expendables;
  }

  add(model: BudgetedModel): void {
    this.#models.add(model);
  }

  /** Its costs are forgotten: another one may come by this name. */
  remove(model: BudgetedModel): void {
    this.#models.delete(model);
    this.#learner.forget(model.name);
  }

  enter(start: RoomStart): void {
    this.#entries.set(start, { start, sinceMs: performance.now(), granted: null, isLogged: false });
  }

  leave(start: RoomStart): void {
    this.#entries.delete(start);
  }

  /** Whether a worker of the model was seen within the budget. */
  wasWell(model: string): boolean {
    return this.#learner.wasWell(model);
  }

  get costs(): StartCost[] {
    return this.#learner.costs.all();
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

  /** Whether a start is under way or memory is about to come back. */
  get isMoving(): boolean {
    const nowMs = performance.now();
    const isUnderWay = [...this.#entries.values()].some(({ granted }) => granted !== null);
    const isComingBack = this.#readings.cards.some(({ ghosts }) => ghosts.length > 0);
    return (
      isUnderWay ||
      isComingBack ||
      this.#gather(nowMs).some(({ workers }) => workers.some(({ state }) => state === 'leaving'))
    );
  }

  /** The processes of all workers on a device of which this is true. */
  idsOn(isOn: (device: string) => boolean): number[] {
    const workers = this.#gather(performance.now()).flatMap((model) => model.workers);
    return workers.filter(({ device }) => isOn(device)).map(({ id }) => id);
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

  /** Lets a start go. On a GPU one goes at a time, so that its memory is known before the next: the others wait on. */
  grant(entry: StartEntry): void {
    const { start } = entry;
    const { device } = start;
    const others = [...this.#entries.values()].filter(({ granted }) => granted !== null);
    if (device !== 'cpu' && others.some((other) => other.start.device === device)) return;
    const isFirst = this.#countOf(start.model) === 0;
    entry.granted = known(this.#needsOf(start, isFirst));
    for (const card of this.#readings.cards) if (card.isOf(start.device)) card.starts(() => start.pid());
  }

  /** Learns from the last reading. */
  learn(): void {
    const nowMs = performance.now();
    this.#learner.learn(this.#gather(nowMs), nowMs);
  }

  gather(nowMs: number): BudgetFacts<StartEntry> {
    const gathered = this.#gather(nowMs);
    this.#noteDeaths(gathered, nowMs);
    return {
      nowMs,
      pools: this.#readings.pools.map((pool) => ({
        ...pool,
        overSinceMs: this.#learner.overSinceMs(pool.name),
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
      isProven: this.#learner.isProven(worker.id),
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
      const isKept = count < (facts?.least ?? 0);
      const needs = isKept ? this.#leastOf(start, count === 0) : this.#needsOf(start, count === 0);
      const kind = isRenewal ? 'renewal' : isExtra ? 'extra' : 'first';
      const isNeeded = isRenewal || isKept || (facts?.hasCallers ?? false);
      return { start: entry, model, sinceMs, needs, kind, isNeeded, afterLeaving };
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
        const bytes = this.#learner.costs.find(model, pool, isFirst);
        return [pool, bytes === null ? null : Math.min(bytes, limits.get(pool) ?? bytes)];
      }),
    );
  }

  /** As `#needsOf`, of a worker that always stays: calls have made the last one grow, which must not keep out its successor. */
  #leastOf(start: RoomStart, isFirst: boolean): Map<string, number | null> {
    const needs = this.#needsOf(start, isFirst);
    return new Map(
      [...needs].map(([pool, bytes]) => [pool, this.#learner.costs.findLeast(start.model, pool) ?? bytes]),
    );
  }

  #sum(workers: readonly BudgetedWorker[], pool: string): number {
    return workers.reduce((sum, { id }) => sum + (this.#readings.bytesOf(id).get(pool) ?? 0), 0);
  }
}

function known(needs: ReadonlyMap<string, number | null>): Map<string, number> {
  return new Map([...needs].map(([pool, bytes]) => [pool, bytes ?? 0]));
}
