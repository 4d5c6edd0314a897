/** The books of the memory budget: models and starts. Gathers the facts for the decision from them, from costs and the last reading. */
import { leaveSteps, stays } from './decide.js';
import {
  MEMORY,
  type BudgetFacts,
  type BudgetedFacts,
  type BudgetedModel,
  type BudgetedWorker,
  type Claim,
  type Expendables,
  type HeldWorker,
  type Holder,
  type Start,
  type StartClaim,
  type Step,
} from './facts.js';
import { Learner } from './learner.js';
import { Leavers } from './leavers.js';
import type { Readings } from './readings.js';

/** More than any spare process of our own runtimes. */
const SPARE_BYTES = 64 * 1024 ** 2;

export class Ledger {
  readonly models = new Set<BudgetedModel>();
  /** The starts that wait for memory or are under way, in the order in which they came. */
  readonly starts = new Set<Start>();
  readonly learner: Learner;
  readonly #readings: Readings;
  readonly #expendables: Expendables;
  /** The models of the workers that were there at the last look. */
  #present: ReadonlyMap<number, string> = new Map();

  constructor(readings: Readings, expendables: Expendables) {
    this.#readings = readings;
    this.learner = new Learner(readings);
    this.#expendables = expendables;
  }

  /** Its costs are forgotten: another one may come by this name. */
  remove(model: BudgetedModel): void {
    this.models.delete(model);
    this.learner.forget(model.name);
  }

  /** Whether a start is under way or memory is about to come back. */
  get isMoving(): boolean {
    const isComingBack = this.#readings.cards.some(({ owed }) => owed.length > 0);
    return (
      this.#underWay.length > 0 || isComingBack || this.#workers.some(({ state }) => state === 'leaving')
    );
  }

  /** The processes of all workers on a device of which this is true. */
  idsOn(isOn: (device: string) => boolean): number[] {
    return this.#workers.filter(({ device }) => isOn(device)).map(({ id }) => id);
  }

  named(name: string | undefined): BudgetedModel | undefined {
    return [...this.models].find((model) => model.name === name);
  }

  /** The model of a worker; undefined for another process. */
  modelOf(id: number): BudgetedModel | undefined {
    return this.named(this.#workers.find((worker) => worker.id === id)?.model);
  }

  /** Whether a spare process would fit, as far as that is known. */
  get hasRoomForSpare(): boolean {
    const host = this.#readings.pools.find(({ name }) => name === MEMORY);
    return host === undefined || host.limitBytes - host.usedBytes >= SPARE_BYTES;
  }

  /** Whether one more worker of the model would fit on this device beside all starts, as far as that is known. */
  hasRoomFor(model: string, device: string): boolean {
    const promised = this.#promised();
    const claims = this.#claims(this.#gather());
    const names = this.#readings.poolsOf(device);
    return this.#readings.pools
      .filter(({ name }) => names.includes(name))
      .every(({ name, limitBytes, usedBytes }) => {
        const coming = claims.reduce(
          (sum, { needs }) => sum + (needs.get(name) ?? 0),
          promised.get(name) ?? 0,
        );
        return limitBytes - usedBytes - coming > (this.learner.findCost(model, name, false) ?? 0);
      });
  }

  /** The models that hold memory of a pool, the largest first. */
  holders(pool: string): Holder[] {
    return this.#gather()
      .map(({ name: model, workers }) => {
        const bytes = workers.reduce((sum, { id }) => sum + this.#bytesOf(id, pool), 0);
        return { model, bytes };
      })
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes);
  }

  /** Lets a start go. On a GPU one goes at a time, so that its memory is known before the next: the others wait on. */
  grant(start: Start): void {
    const { device, model } = start;
    if (!this.starts.has(start)) return; // given up since the decision
    if (device !== 'cpu' && this.#underWay.some((other) => other.device === device)) return;
    const models = this.#gather();
    const needs = this.#needsOf(start, this.#countOf(model, models), models);
    start.granted = new Map([...needs].map(([pool, bytes]) => [pool, bytes ?? 0]));
    for (const card of this.#readings.cards) if (card.isOf(device)) card.starts(start);
  }

  /** Learns from the last reading. */
  learn(): void {
    const nowMs = performance.now();
    this.learner.learn(this.#gather(nowMs), nowMs);
  }

  gather(nowMs: number): BudgetFacts {
    const models = this.#gather(nowMs);
    this.noteDeaths(models, nowMs);
    const held = models
      .flatMap(({ workers }) => workers)
      .map((worker): HeldWorker => {
        const { id } = worker;
        return { ...worker, bytes: this.#readings.bytesOf(id), isProven: this.learner.proven.has(id) };
      });
    return {
      nowMs,
      pools: this.#readings.pools.map(({ name, limitBytes, ownBytes, usedBytes, readAtMs }) => {
        return {
          name,
          limitBytes,
          ownBytes,
          usedBytes,
          readAtMs,
          overSinceMs: this.learner.overSinceMs.get(name) ?? null,
        };
      }),
      promised: this.#promised(),
      starts: this.#claims(models),
      workers: [...held, ...this.#readings.cards.flatMap(({ owed }) => owed)],
      models,
      expendables: this.#expendables.ids.map((id) => ({ id, bytes: this.#readings.bytesOf(id) })),
    };
  }

  /** Remembers what workers that have ended held of cards. */
  noteDeaths(models = this.#gather(), nowMs = performance.now()): void {
    const present = new Map(
      models.flatMap(({ workers }) => workers.map(({ id, model }) => [id, model] as const)),
    );
    for (const [id, model] of this.#present)
      if (!present.has(id)) for (const card of this.#readings.cards) card.died(id, model, nowMs);
    this.#present = present;
  }

  /** One idle worker leaves for a start on this device; none if no model can spare one. */
  chooseOne(device: string, model: string): Step[] {
    const facts = { ...this.gather(performance.now()), expendables: [] };
    const name = this.#readings.poolsOf(device).at(-1);
    const pool = facts.pools.find((one) => one.name === name);
    if (pool === undefined) return [];
    const needs = new Map([[pool.name, 1]]);
    const claim: Claim = { model, needs, sinceMs: facts.nowMs, kind: 'extra' };
    const { limitBytes, usedBytes } = pool;
    const lack = { pool: pool.name, limitBytes, usedBytes, needBytes: null };
    return leaveSteps(new Leavers(facts).choose(claim, needs), claim, lack);
  }

  #gather(nowMs = performance.now()): BudgetedFacts[] {
    return Array.from(this.models, (model) => model.facts(nowMs));
  }

  get #workers(): BudgetedWorker[] {
    return this.#gather().flatMap(({ workers }) => workers);
  }

  get #underWay(): Start[] {
    return [...this.starts].filter(({ granted }) => granted !== null);
  }

  /** Memory that the starts under way have not taken yet. */
  #promised(): Map<string, number> {
    const promised = new Map<string, number>();
    for (const { granted, pid } of this.#underWay)
      for (const [pool, need] of granted ?? []) {
        const left = Math.max(0, need - (pid === null ? 0 : this.#bytesOf(pid, pool)));
        promised.set(pool, (promised.get(pool) ?? 0) + left);
      }
    return promised;
  }

  /** The claims of starts that wait, each as if the ones before it had gone. One on a GPU is left out until the cards are known. */
  #claims(models: readonly BudgetedFacts[]): StartClaim[] {
    const counts = new Map(models.map(({ name }) => [name, this.#countOf(name, models)]));
    const waiting = [...this.starts].filter(
      ({ device, granted }) => granted === null && !(device !== 'cpu' && this.#readings.isBlind),
    );
    return waiting.map((start) => {
      const { model, sinceMs, isRenewal } = start;
      const { pinned = 0, wanted = 0, hasCallers = false } = find(model, models) ?? {};
      const count = counts.get(model) ?? 0; // workers that its model has without it
      if (!isRenewal) counts.set(model, count + 1);
      const isExtra = count >= Math.max(1, pinned);
      return {
        start,
        model,
        sinceMs,
        needs: this.#needsOf(start, count, models),
        kind: isRenewal ? 'renewal' : isExtra ? 'extra' : 'first',
        isRestore: start.isReplacement && start.isModelDown(),
        isNeeded: isRenewal || count < pinned || (hasCallers && count < wanted), // one beyond would only stand by
      };
    });
  }

  /** Workers of the model that stay, and its starts under way. */
  #countOf(name: string, models: readonly BudgetedFacts[]): number {
    const workers = find(name, models)?.workers ?? [];
    const coming = this.#underWay.filter(({ model, pid }) => model === name && pid === null);
    return workers.filter(({ state }) => state !== 'leaving').length + coming.length;
  }

  /**
   * At most what workers that always stay leave of the pool: its worker may have grown by its calls, and would never come
   * again; at least what one had when it was ready. Of a worker that its model always has only that: the growth of the last
   * one must not keep out its successor.
   */
  #needsOf(
    { model, device }: Start,
    count: number,
    models: readonly BudgetedFacts[],
  ): ReadonlyMap<string, number | null> {
    const { pinned = 0 } = find(model, models) ?? {};
    const limits = new Map(this.#readings.pools.map(({ name, limitBytes }) => [name, limitBytes]));
    return new Map(
      this.#readings.poolsOf(device).map((pool) => {
        const limitBytes = limits.get(pool) ?? Infinity;
        const most = this.learner.findCost(model, pool, count === 0);
        const least = this.learner.findLeast(model, pool) ?? most;
        if (least === null || most === null) return [pool, null];
        if (count < pinned) return [pool, Math.min(least, limitBytes)];
        const roomBytes = limitBytes - this.#stayingBeside(model, pool, models);
        return [pool, Math.min(most, Math.max(least, roomBytes), limitBytes)];
      }),
    );
  }

  /** Memory of the workers of other models that always stay. */
  #stayingBeside(model: string, pool: string, models: readonly BudgetedFacts[]): number {
    const held = models
      .filter(({ name }) => name !== model)
      .flatMap(({ workers, pinned }) => {
        const bytes = workers.filter(stays).map(({ id }) => this.#bytesOf(id, pool));
        return bytes.sort((a, b) => a - b).slice(0, pinned);
      });
    return held.reduce((sum, bytes) => sum + bytes, 0);
  }

  #bytesOf(id: number, pool: string): number {
    return this.#readings.bytesOf(id).get(pool) ?? 0;
  }
}

function find(name: string, models: readonly BudgetedFacts[]): BudgetedFacts | undefined {
  return models.find((model) => model.name === name);
}
