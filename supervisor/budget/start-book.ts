/** The starts that wait for memory or are under way: the need of each, and the memory promised to those under way. */
import type { WaitingStart } from './facts.js';
import type { Gathered, Learner } from './learner.js';
import type { RoomStart } from './memory-room.js';
import type { MemoryReadings } from './readings.js';
import { stays } from './refusals.js';

/** A start that waits, or is under way. */
interface Entry {
  readonly sinceMs: number;
  /** Memory that it will take of each pool, as far as that is known; null while it waits. */
  granted: ReadonlyMap<string, number> | null;
  isLogged: boolean;
}

type Needs = ReadonlyMap<string, number | null>;

export class StartBook {
  readonly #readings: MemoryReadings;
  readonly #learner: Learner;
  readonly #entries = new Map<RoomStart, Entry>();

  constructor(readings: MemoryReadings, learner: Learner) {
    this.#readings = readings;
    this.#learner = learner;
  }

  enter(start: RoomStart): void {
    this.#entries.set(start, { sinceMs: performance.now(), granted: null, isLogged: false });
  }

  leave(start: RoomStart): void {
    this.#entries.delete(start);
  }

  find(start: RoomStart): Entry | null {
    return this.#entries.get(start) ?? null;
  }

  get isAnyWaiting(): boolean {
    return [...this.#entries.values()].some(({ granted }) => granted === null);
  }

  get isAnyUnderWay(): boolean {
    return this.#underWay.length > 0;
  }

  /** Lets a start go. On a GPU one goes at a time, so that its memory is known before the next: the others wait on. */
  grant(start: RoomStart, gathered: readonly Gathered[]): void {
    const { device, model } = start;
    const entry = this.#entries.get(start);
    if (entry === undefined) return;
    if (device !== 'cpu' && this.#underWay.some((other) => other.device === device)) return;
    const { pinned = 0 } = findModel(model, gathered) ?? {};
    const needs = this.#needsOf(start, this.#countOf(model, gathered), pinned, gathered);
    entry.granted = new Map([...needs].map(([pool, bytes]) => [pool, bytes ?? 0]));
    for (const card of this.#readings.cards) if (card.isOf(device)) card.starts(() => start.pid());
  }

  /** Memory that the starts under way have not taken yet. */
  promised(): Map<string, number> {
    const promised = new Map<string, number>();
    for (const start of this.#underWay) {
      const pid = start.pid();
      const taken = pid === null ? null : this.#readings.bytesOf(pid);
      for (const [pool, need] of this.#entries.get(start)?.granted ?? []) {
        const left = Math.max(0, need - (taken?.get(pool) ?? 0));
        promised.set(pool, (promised.get(pool) ?? 0) + left);
      }
    }
    return promised;
  }

  /** Starts that wait, each as if the ones before it had gone. One on a GPU is left out until the cards are known. */
  waiting(gathered: readonly Gathered[]): WaitingStart<RoomStart>[] {
    const counts = new Map(gathered.map(({ model: { name } }) => [name, this.#countOf(name, gathered)]));
    const waiting = [...this.#entries].filter(
      ([{ device }, { granted }]) => granted === null && !(device !== 'cpu' && this.#readings.isBlind),
    );
    return waiting.map(([start, { sinceMs }]) => {
      const { model, isRenewal, afterLeaving } = start;
      const { pinned = 0, wanted = 0, hasCallers = false } = findModel(model, gathered) ?? {};
      const count = counts.get(model) ?? 0; // workers that its model has without it
      if (!isRenewal) counts.set(model, count + 1);
      const isExtra = count >= Math.max(1, pinned);
      return {
        start,
        model,
        sinceMs,
        needs: this.#needsOf(start, count, pinned, gathered),
        kind: isRenewal ? 'renewal' : isExtra ? 'extra' : 'first',
        isRestore: start.isReplacement && start.isModelDown(),
        isNeeded: isRenewal || count < pinned || (hasCallers && count < wanted), // one beyond would only stand by
        afterLeaving,
      };
    });
  }

  get #underWay(): RoomStart[] {
    return [...this.#entries].filter(([, { granted }]) => granted !== null).map(([start]) => start);
  }

  /** Workers of the model that stay, and its starts under way. */
  #countOf(name: string, gathered: readonly Gathered[]): number {
    const workers = findModel(name, gathered)?.workers ?? [];
    const coming = this.#underWay.filter((start) => start.model === name && start.pid() === null);
    return workers.filter(({ state }) => state !== 'leaving').length + coming.length;
  }

  /**
   * At most what workers that always stay leave of the pool: its worker may have grown by its calls, and would never come
   * again; at least what one had when it was ready. Of a worker that its model always has only that: the growth of the last
   * one must not keep out its successor.
   */
  #needsOf(
    { model, device }: RoomStart,
    count: number,
    pinned: number,
    gathered: readonly Gathered[],
  ): Needs {
    const { costs } = this.#learner;
    const limits = new Map(this.#readings.pools.map(({ name, limitBytes }) => [name, limitBytes]));
    return new Map(
      this.#readings.poolsOf(device).map((pool) => {
        const most = costs.find(model, pool, count === 0);
        const least = costs.findLeast(model, pool);
        if (most === null || count < pinned) return [pool, atMost(least ?? most, limits.get(pool))];
        const roomBytes = (limits.get(pool) ?? Infinity) - this.#stayingBeside(model, pool, gathered);
        return [pool, atMost(Math.min(most, Math.max(least ?? most, roomBytes)), limits.get(pool))];
      }),
    );
  }

  /** Memory of the workers of other models that always stay. */
  #stayingBeside(model: string, pool: string, gathered: readonly Gathered[]): number {
    const others = gathered.filter((other) => other.model.name !== model);
    return others.reduce((sum, { workers, pinned }) => {
      const held = workers.filter(stays).map(({ id }) => this.#readings.bytesOf(id).get(pool) ?? 0);
      return held
        .sort((a, b) => a - b)
        .reduce((total, bytes, i) => (i < pinned ? total + bytes : total), sum);
    }, 0);
  }
}

function atMost(bytes: number | null, limit = Infinity): number | null {
  return bytes === null ? null : Math.min(bytes, limit);
}

function findModel(name: string, gathered: readonly Gathered[]): Gathered | undefined {
  return gathered.find(({ model }) => model.name === name);
}
