/**
 * Decides about memory: which start may go, which worker leaves, what waits. One pure function of facts.
 *
 * 1. What alone needs more than a budget is refused, and so are workers that always stay and do not fit together.
 * 2. The others are served in the order in which they have waited: first what exceeds the budget already, then starts that
 *    restore a model whose last ready worker was lost, then those of other models without a worker, then extra ones, then
 *    those for which no call waits. A start goes if its memory is free. If not, spares leave, then idle workers above their
 *    model's minimum; for a model without a worker also busy ones whose turn is over. For a start without calls nothing
 *    leaves.
 * 3. A start that has to wait keeps those behind it from the memory that it lacks, and from no other.
 */
import type { BudgetFacts, HeldWorker, LeaveWhy, Lack, Step, WaitingStart } from './facts.js';
import { lastsUntilMs, Leavers, type Demand } from './leavers.js';
import { isHopeless, refusals } from './refusals.js';

/** A start whose cost is not known goes if anything is free. */
const UNKNOWN_BYTES = 1;

/** A start for which no call waits is given up after this time; the present worker of a renewal goes first after it. */
const PATIENCE_MS = 60_000;

export function decide<S>(facts: BudgetFacts<S>): Step<S>[] {
  const steps: Step<S>[] = refusals(facts);
  if (steps.length > 0) return steps; // the next decision knows what this has freed
  const room = new Room(facts);
  for (const { name, overSinceMs } of facts.pools)
    if (overSinceMs !== null) steps.push(...room.settleOverrun(name, overSinceMs));
  for (const start of inOrder(facts.starts)) steps.push(...room.settle(start));
  return steps;
}

function inOrder<S>(starts: readonly WaitingStart<S>[]): WaitingStart<S>[] {
  const rank = ({ kind, isNeeded, isRestore }: WaitingStart<S>): number => {
    if (!isNeeded) return 3;
    return isRestore ? 0 : kind === 'extra' ? 2 : 1;
  };
  return starts.toSorted((a, b) => rank(a) - rank(b) || a.sinceMs - b.sinceMs);
}

/** The memory that is left during one decision. */
class Room<S> {
  readonly #facts: BudgetFacts<S>;
  readonly #leavers: Leavers;
  /** Free now, without what starts under way and starts that wait will take. */
  readonly #free = new Map<string, number>();
  /** As `#free`, once those that leave have left. */
  readonly #coming = new Map<string, number>();
  readonly #blocked = new Set<string>();

  constructor(facts: BudgetFacts<S>) {
    this.#facts = facts;
    this.#leavers = new Leavers(facts);
    for (const { name, limitBytes, usedBytes } of facts.pools) {
      const free = limitBytes - usedBytes - (facts.promised.get(name) ?? 0);
      this.#free.set(name, free);
      this.#coming.set(name, free);
    }
    for (const { state, bytes } of facts.workers) if (state === 'leaving') this.#add(this.#coming, bytes);
  }

  settleOverrun(pool: string, sinceMs: number): Step<S>[] {
    const needs = new Map([[pool, 0]]);
    const newest = this.#facts.workers.reduce<HeldWorker | null>(
      (last, worker) => (last === null || worker.sinceMs > last.sinceMs ? worker : last),
      null,
    );
    const queueTimeoutMs = this.#leavers.modelOf(newest?.model ?? '')?.queueTimeoutMs ?? Infinity;
    return this.#sendAway({
      model: null,
      sinceMs,
      needs,
      isRenewal: false,
      takesTurns: true,
      queueTimeoutMs,
    });
  }

  settle(waiting: WaitingStart<S>): Step<S>[] {
    const { start, model, sinceMs, kind, isNeeded, afterLeaving } = waiting;
    const needs = new Map([...waiting.needs].map(([pool, bytes]) => [pool, bytes ?? UNKNOWN_BYTES]));
    const isRead = this.#facts.pools.every(({ name, readAtMs }) => !needs.has(name) || readAtMs >= sinceMs);
    const isHeld = !isRead || (afterLeaving && this.#isAnyLeaving(needs));
    if (
      !isHeld &&
      this.#fits(this.#free, needs) &&
      ![...needs.keys()].some((pool) => this.#blocked.has(pool))
    ) {
      this.#take(needs);
      return [{ kind: 'go', start }];
    }
    const queueTimeoutMs = this.#leavers.modelOf(model)?.queueTimeoutMs ?? Infinity;
    const lack = this.#lackOf(waiting.needs, needs);
    if (!isRead) {
      this.#hold(needs);
      return [];
    }
    const isPatient = this.#facts.nowMs - sinceMs < PATIENCE_MS;
    // Two models that are replaced at the same time would wait for each other, since their workers may not leave meanwhile.
    if (kind === 'renewal' && (!isPatient || isHopeless(this.#facts, waiting)))
      return [
        {
          kind: 'refuseStart',
          start,
          why: { ...lack, rule: 'together', bytes: lack.needBytes ?? 0, holders: [] },
        },
      ];
    if (!isNeeded) return [isPatient ? { kind: 'wait', start, lack } : { kind: 'withdraw', start }];
    const isRenewal = kind === 'renewal';
    const takesTurns = kind !== 'extra';
    const steps = this.#sendAway({ model, sinceMs, needs, isRenewal, takesTurns, queueTimeoutMs });
    this.#hold(needs);
    return [...steps, { kind: 'wait', start, lack }];
  }

  /** Sends away as many as the demand lacks; none if they would not be enough. */
  #sendAway(demand: Demand): Step<S>[] {
    const lacking = [...demand.needs].filter(([pool, need]) => this.#left(this.#coming, pool) < need);
    if (lacking.length === 0) return [];
    const missing = new Map(lacking.map(([pool, need]) => [pool, need - this.#left(this.#coming, pool)]));
    const chosen = this.#leavers.choose(demand, missing);
    for (const { bytes } of chosen) this.#add(this.#coming, bytes);
    const [pool, need] = lacking[0] as [string, number];
    return chosen.map(({ id, rule, ms }): Step<S> => {
      const why: LeaveWhy = {
        rule,
        ms,
        forModel: demand.model,
        ...this.#figures(pool),
        needBytes: known(need),
      };
      return { kind: 'leave', id, why };
    });
  }

  /** Blocks those behind from the pools that are lacking; the rest is kept for this one. */
  #hold(needs: ReadonlyMap<string, number>): void {
    for (const [pool, need] of needs) if (this.#left(this.#free, pool) < need) this.#blocked.add(pool);
    this.#take(needs);
  }

  #take(needs: ReadonlyMap<string, number>): void {
    for (const [pool, need] of needs) {
      this.#free.set(pool, this.#left(this.#free, pool) - need);
      this.#coming.set(pool, this.#left(this.#coming, pool) - need);
    }
  }

  #lackOf(given: WaitingStart<S>['needs'], needs: ReadonlyMap<string, number>): Lack {
    const names = [...needs.keys()];
    const lacks = (pool: string): boolean => this.#left(this.#free, pool) < (needs.get(pool) ?? 0);
    const pool = names.find(lacks) ?? names.find((name) => this.#blocked.has(name)) ?? names[0] ?? '';
    return { ...this.#figures(pool), needBytes: given.get(pool) ?? null };
  }

  #figures(name: string): Omit<Lack, 'needBytes'> {
    const { limitBytes = 0, usedBytes = 0 } = this.#facts.pools.find((pool) => pool.name === name) ?? {};
    return { pool: name, limitBytes, usedBytes };
  }

  #isAnyLeaving(needs: ReadonlyMap<string, number>): boolean {
    return this.#facts.workers.some(
      ({ state, bytes }) => state === 'leaving' && [...bytes.keys()].some((pool) => needs.has(pool)),
    );
  }

  #fits(left: Map<string, number>, needs: ReadonlyMap<string, number>): boolean {
    return [...needs].every(([pool, need]) => this.#left(left, pool) >= need);
  }

  #left(left: Map<string, number>, pool: string): number {
    return left.get(pool) ?? Infinity;
  }

  #add(to: Map<string, number>, bytes: ReadonlyMap<string, number>): void {
    for (const [pool, more] of bytes) if (to.has(pool)) to.set(pool, this.#left(to, pool) + more);
  }
}

function known(need: number): number | null {
  return need <= UNKNOWN_BYTES ? null : need;
}

/** When the next turn of a busy worker is over, for someone who waits; null if no one waits for that. */
export function findNextTurnMs<S>(facts: BudgetFacts<S>): number | null {
  const waiting = facts.starts.filter(({ kind, isNeeded }) => kind !== 'extra' && isNeeded);
  const ends = waiting.flatMap(({ model, sinceMs }) => {
    const { queueTimeoutMs = Infinity } = facts.models.find(({ name }) => name === model) ?? {};
    const busy = facts.workers.filter((worker) => worker.state === 'busy' && worker.model !== model);
    return busy.map((worker) => {
      const startMs = facts.models.find(({ name }) => name === worker.model)?.startMs ?? 0;
      return lastsUntilMs(worker, startMs, { sinceMs, queueTimeoutMs });
    });
  });
  const later = ends.filter((atMs) => atMs > facts.nowMs);
  return later.length === 0 ? null : Math.min(...later);
}
