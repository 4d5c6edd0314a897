/** The books of the memory budget: gathers the facts for the decision from models, starts, costs and the last reading. */
import type {
  BudgetFacts,
  BudgetedModel,
  BudgetedWorker,
  Expendables,
  HeldWorker,
  Holder,
  Step,
} from './facts.js';
import { Learner, type Gathered } from './learner.js';
import { Leavers } from './leavers.js';
import { MEMORY } from './memory-text.js';
import type { MemoryReadings } from './readings.js';
import type { RoomStart } from './memory-room.js';
import { StartBook } from './start-book.js';

/** More than any spare process of our own runtimes. */
const SPARE_BYTES = 64 * 1024 ** 2;

export class Ledger {
  readonly starts: StartBook;
  readonly learner: Learner;
  readonly #readings: MemoryReadings;
  readonly #expendables: Expendables;
  readonly #models = new Set<BudgetedModel>();
  /** The models of the workers that were there at the last look. */
  #present: ReadonlyMap<number, string> = new Map();

  constructor(readings: MemoryReadings, expendables: Expendables) {
    this.#readings = readings;
    this.learner = new Learner(readings);
    this.#expendables = expendables;
    this.starts = new StartBook(readings, this.learner);
  }

  add(model: BudgetedModel): void {
    this.#models.add(model);
  }

  /** Its costs are forgotten: another one may come by this name. */
  remove(model: BudgetedModel): void {
    this.#models.delete(model);
    this.learner.forget(model.name);
  }

  /** Whether a start is under way or memory is about to come back. */
  get isMoving(): boolean {
    const nowMs = performance.now();
    const isComingBack = this.#readings.cards.some(({ owed }) => owed.length > 0);
    return (
      this.starts.isAnyUnderWay ||
      isComingBack ||
      this.#gather(nowMs).some(({ workers }) => workers.some(({ state }) => state === 'leaving'))
    );
  }

  /** The processes of all workers on a device of which this is true. */
  idsOn(isOn: (device: string) => boolean): number[] {
    const workers = this.#gather(performance.now()).flatMap((model) => model.workers);
    return workers.filter(({ device }) => isOn(device)).map(({ id }) => id);
  }

  named(name: string): BudgetedModel | null {
    return [...this.#models].find((model) => model.name === name) ?? null;
  }

  modelOf(id: number): BudgetedModel | null {
    const found = this.#gather(performance.now()).find(({ workers }) => workers.some((one) => one.id === id));
    return found?.model ?? null;
  }

  get hasRoomForSpare(): boolean {
    const host = this.#readings.pools.find(({ name }) => name === MEMORY);
    return host === undefined || host.limitBytes - host.usedBytes >= SPARE_BYTES;
  }

  /** Whether one more worker of the model would fit on this device beside all starts, as far as that is known. */
  hasRoomFor(model: string, device: string): boolean {
    const promised = this.starts.promised();
    const waiting = this.starts.waiting(this.#gather(performance.now()));
    const names = this.#readings.poolsOf(device);
    return this.#readings.pools
      .filter(({ name }) => names.includes(name))
      .every(({ name, limitBytes, usedBytes }) => {
        const coming = waiting.reduce(
          (sum, { needs }) => sum + (needs.get(name) ?? 0),
          promised.get(name) ?? 0,
        );
        return limitBytes - usedBytes - coming > (this.learner.costs.find(model, name, false) ?? 0);
      });
  }

  memoryRead(): void {
    for (const model of this.#models) model.memoryRead();
  }

  /** The models that hold memory of a pool, the largest first. */
  holders(pool: string): Holder[] {
    return this.#gather(performance.now())
      .map(({ model, workers }) => ({ model: model.name, bytes: this.#sum(workers, pool) }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes);
  }

  /** See `StartBook.grant`. */
  grant(start: RoomStart): void {
    this.starts.grant(start, this.#gather(performance.now()));
  }

  /** Learns from the last reading. */
  learn(): void {
    const nowMs = performance.now();
    this.learner.learn(this.#gather(nowMs), nowMs);
  }

  /** Remembers what workers that have ended held of cards. */
  noteDeaths(): void {
    const nowMs = performance.now();
    this.#noteDeaths(this.#gather(nowMs), nowMs);
  }

  gather(nowMs: number): BudgetFacts<RoomStart> {
    const gathered = this.#gather(nowMs);
    this.#noteDeaths(gathered, nowMs);
    return {
      nowMs,
      pools: this.#readings.pools.map((pool) => ({
        ...pool,
        overSinceMs: this.learner.overSinceMs(pool.name),
      })),
      promised: this.starts.promised(),
      starts: this.starts.waiting(gathered),
      workers: [...gathered.flatMap((model) => this.#held(model)), ...this.#owed()],
      models: gathered.map(({ model: { name }, ...facts }) => ({ name, ...facts })),
      expendables: this.#expendables.ids.map((id) => ({ id, bytes: this.#readings.bytesOf(id) })),
    };
  }

  /** One idle worker leaves for a start on this device; none if no model can spare one. */
  chooseOne(device: string, model: string): Step<RoomStart>[] {
    const facts = { ...this.gather(performance.now()), expendables: [] };
    const name = this.#readings.poolsOf(device).at(-1);
    const pool = facts.pools.find((one) => one.name === name);
    if (pool === undefined) return [];
    const needs = new Map([[pool.name, 1]]);
    const since = { sinceMs: facts.nowMs, queueTimeoutMs: Infinity };
    const demand = { model, needs, isRenewal: false, takesTurns: false, ...since };
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
      isProven: this.learner.isProven(worker.id),
    }));
  }

  /** Memory of GPUs that the driver has not given back yet. */
  #owed(): HeldWorker[] {
    return this.#readings.cards.flatMap(({ name, owed }) =>
      owed.map(({ id, model, bytes, diedAtMs }) => ({
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

  #sum(workers: readonly BudgetedWorker[], pool: string): number {
    return workers.reduce((sum, { id }) => sum + (this.#readings.bytesOf(id).get(pool) ?? 0), 0);
  }
}
