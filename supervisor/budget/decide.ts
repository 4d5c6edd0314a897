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
import type {
  BudgetFacts,
  Claim,
  HeldWorker,
  Holder,
  Lack,
  Pool,
  RefuseWhy,
  StartClaim,
  Step,
} from './facts.js';
import { Leavers, type Leaver } from './leavers.js';

/** A start whose cost is not known goes if anything is free. */
const UNKNOWN_BYTES = 1;

/** A start for which no call waits is given up after this time; the present worker of a renewal goes first after it. */
const PATIENCE_MS = 60_000;

export function decide(facts: BudgetFacts): Step[] {
  const steps = refusals(facts);
  if (steps.length > 0) return steps; // the next decision knows what this has freed
  const room = new Room(facts);
  for (const { name, overSinceMs } of facts.pools)
    if (overSinceMs !== null) steps.push(...room.settleOverrun(name, overSinceMs));
  for (const claim of inOrder(facts.starts)) steps.push(...room.settle(claim));
  return steps;
}

/** When the next turn of a busy worker is over, for someone who waits; null if no one waits for that. */
export function findNextTurnMs(facts: BudgetFacts): number | null {
  const leavers = new Leavers(facts);
  const ends = facts.starts
    .filter(({ kind, isNeeded }) => kind !== 'extra' && isNeeded)
    .flatMap((claim) => {
      const busy = facts.workers.filter(({ state, model }) => state === 'busy' && model !== claim.model);
      return busy.map((worker) => leavers.turnEndsMs(worker, claim));
    });
  const later = ends.filter((atMs) => atMs > facts.nowMs);
  return later.length === 0 ? null : Math.min(...later);
}

function inOrder(starts: readonly StartClaim[]): StartClaim[] {
  const rank = ({ kind, isNeeded, isRestore }: StartClaim): number => {
    if (!isNeeded) return 3;
    return isRestore ? 0 : kind === 'extra' ? 2 : 1;
  };
  return starts.toSorted((a, b) => rank(a) - rank(b) || a.sinceMs - b.sinceMs);
}

/** Steps by which these leave for the claim; `lack`: what it lacks. */
export function leaveSteps(leavers: readonly Leaver[], { model: forModel }: Claim, lack: Lack): Step[] {
  return leavers.map(({ id, rule, ms }) => ({ kind: 'leave', id, why: { ...lack, rule, ms, forModel } }));
}

/** The memory that is left during one decision. */
class Room {
  readonly #facts: BudgetFacts;
  readonly #leavers: Leavers;
  /** Free now, without what starts under way and starts that wait will take. */
  readonly #free = new Map<string, number>();
  /** As `#free`, once those that leave have left. */
  readonly #coming = new Map<string, number>();
  readonly #blocked = new Set<string>();

  constructor(facts: BudgetFacts) {
    this.#facts = facts;
    this.#leavers = new Leavers(facts);
    for (const { name, limitBytes, usedBytes } of facts.pools) {
      const free = limitBytes - usedBytes - (facts.promised.get(name) ?? 0);
      this.#free.set(name, free);
      this.#coming.set(name, free);
    }
    for (const { state, bytes } of facts.workers) if (state === 'leaving') this.#comes(bytes);
  }

  settleOverrun(pool: string, sinceMs: number): Step[] {
    return this.#sendAway({ model: null, sinceMs, needs: new Map([[pool, 0]]), kind: 'first' });
  }

  settle(claim: StartClaim): Step[] {
    const { start, sinceMs, kind, isNeeded } = claim;
    const needs = new Map([...claim.needs].map(([pool, bytes]) => [pool, bytes ?? UNKNOWN_BYTES]));
    const isRead = this.#facts.pools.every(({ name, readAtMs }) => !needs.has(name) || readAtMs >= sinceMs);
    const mayGo = [...needs].every(
      ([pool, need]) => !this.#blocked.has(pool) && this.#lacks(pool, need) <= 0,
    );
    if (isRead && mayGo && !(start.afterLeaving && this.#isAnyLeaving(needs))) {
      this.#take(needs);
      return [{ kind: 'go', start }];
    }
    const lack = this.#lackOf(claim, needs);
    if (!isRead) {
      this.#hold(needs);
      return [];
    }
    const isPatient = this.#facts.nowMs - sinceMs < PATIENCE_MS;
    // Two models that are replaced at the same time would wait for each other, since their workers may not leave meanwhile.
    if (kind === 'renewal' && (!isPatient || isHopeless(this.#facts, claim))) {
      const why: RefuseWhy = { ...lack, rule: 'together', bytes: lack.needBytes ?? 0, holders: [] };
      return [{ kind: 'refuseStart', start, why }];
    }
    if (!isNeeded) return [isPatient ? { kind: 'wait', start, lack } : { kind: 'withdraw', start }];
    const steps = this.#sendAway({ ...claim, needs });
    this.#hold(needs);
    return [...steps, { kind: 'wait', start, lack }];
  }

  /** Sends away as many as the claim lacks; none if they would not be enough. */
  #sendAway(claim: Claim & { readonly needs: ReadonlyMap<string, number> }): Step[] {
    const lacking = [...claim.needs].filter(([pool, need]) => this.#lacks(pool, need, this.#coming) > 0);
    const [first] = lacking;
    if (first === undefined) return [];
    const missing = new Map(lacking.map(([pool, need]) => [pool, this.#lacks(pool, need, this.#coming)]));
    const chosen = this.#leavers.choose(claim, missing);
    for (const { bytes } of chosen) this.#comes(bytes);
    const [pool, need] = first;
    return leaveSteps(chosen, claim, this.#figures(pool, need <= UNKNOWN_BYTES ? null : need));
  }

  /** Blocks those behind from the pools that are lacking; the rest is kept for this one. */
  #hold(needs: ReadonlyMap<string, number>): void {
    for (const [pool, need] of needs) if (this.#lacks(pool, need) > 0) this.#blocked.add(pool);
    this.#take(needs);
  }

  #take(needs: ReadonlyMap<string, number>): void {
    for (const [pool, need] of needs)
      for (const left of [this.#free, this.#coming]) left.set(pool, -this.#lacks(pool, need, left));
  }

  #lackOf(claim: StartClaim, needs: ReadonlyMap<string, number>): Lack {
    const names = [...needs.keys()];
    const lacks = (pool: string): boolean => this.#lacks(pool, needs.get(pool) ?? 0) > 0;
    const pool = names.find(lacks) ?? names.find((name) => this.#blocked.has(name)) ?? names[0] ?? '';
    return this.#figures(pool, claim.needs.get(pool) ?? null);
  }

  #figures(pool: string, needBytes: number | null): Lack {
    const { limitBytes = 0, usedBytes = 0 } = this.#facts.pools.find(({ name }) => name === pool) ?? {};
    return { pool, limitBytes, usedBytes, needBytes };
  }

  #isAnyLeaving(needs: ReadonlyMap<string, number>): boolean {
    return this.#facts.workers.some(
      ({ state, bytes }) => state === 'leaving' && [...bytes.keys()].some((pool) => needs.has(pool)),
    );
  }

  /** The part of the need that the pool has not left; 0 or less: it has enough. */
  #lacks(pool: string, need: number, left = this.#free): number {
    return need - (left.get(pool) ?? Infinity);
  }

  /** This memory comes back. */
  #comes(bytes: ReadonlyMap<string, number>): void {
    for (const [pool, more] of bytes) {
      const left = this.#coming.get(pool);
      if (left !== undefined) this.#coming.set(pool, left + more);
    }
  }
}

/** Finds what can never fit: a worker or a start that alone needs more than a budget, and workers that always stay. */
function refusals(facts: BudgetFacts): Step[] {
  return facts.pools.flatMap((pool) => {
    const alone = tooLargeAlone(facts, pool);
    return alone.length > 0 ? alone : tooLargeTogether(facts, pool);
  });
}

/** Whether the start of a renewal will never fit beside the workers that stay: those of its own model do. */
function isHopeless(facts: BudgetFacts, { model, needs }: StartClaim): boolean {
  return facts.pools.some(({ name, limitBytes }) => {
    const own = facts.workers.filter((worker) => worker.model === model && stays(worker));
    const others = staying(facts, name).filter((worker) => worker.model !== model);
    return bytesOf([...own, ...others], name) + (needs.get(name) ?? 0) > limitBytes;
  });
}

function tooLargeAlone({ workers }: BudgetFacts, pool: Pool): Step[] {
  return workers
    .filter(({ state, bytes }) => mayEnd(state) && (bytes.get(pool.name) ?? 0) > pool.limitBytes)
    .map(({ id, bytes }) => {
      const why = refusal('alone', pool, bytes.get(pool.name) ?? 0, []);
      return { kind: 'refuseWorker', id, why };
    });
}

function tooLargeTogether(facts: BudgetFacts, pool: Pool): Step[] {
  const stay = staying(facts, pool.name);
  const heldBytes = bytesOf(stay, pool.name);
  const holders = holdersOf(stay, pool.name);
  const hopeless = facts.starts.find(
    ({ model, kind, needs, sinceMs }) =>
      kind === 'first' &&
      pool.readAtMs >= sinceMs &&
      isBelow(facts, model) &&
      heldBytes + (needs.get(pool.name) ?? 0) > pool.limitBytes,
  );
  if (hopeless !== undefined) {
    const needBytes = hopeless.needs.get(pool.name) ?? null;
    const why = { ...refusal('together', pool, heldBytes + (needBytes ?? 0), holders), needBytes };
    return [{ kind: 'refuseStart', start: hopeless.start, why }];
  }
  if (heldBytes <= pool.limitBytes) return [];
  const [newest] = stay
    .filter(({ state, isProven }) => mayEnd(state) && !isProven)
    .sort((a, b) => b.sinceMs - a.sinceMs);
  if (newest === undefined) return []; // they have grown since: none of them is ended for that
  return [{ kind: 'refuseWorker', id: newest.id, why: refusal('together', pool, heldBytes, holders) }];
}

/** The workers that always stay. Of models that have more than they keep, the smallest. */
function staying({ workers, models }: BudgetFacts, pool: string): HeldWorker[] {
  return models.flatMap(({ name, pinned }) =>
    workers
      .filter(({ model, state }) => model === name && stays({ state }))
      .sort((a, b) => (a.bytes.get(pool) ?? 0) - (b.bytes.get(pool) ?? 0))
      .slice(0, pinned),
  );
}

/** Whether the model has fewer workers than it always has. */
function isBelow({ models, workers }: BudgetFacts, model: string): boolean {
  const count = workers.filter((worker) => worker.model === model && stays(worker)).length;
  return count < (models.find(({ name }) => name === model)?.pinned ?? 0);
}

function mayEnd(state: HeldWorker['state']): boolean {
  return state === 'starting' || state === 'standby' || state === 'idle';
}

/** Whether a worker holds its memory until further notice. */
export function stays({ state }: Pick<HeldWorker, 'state'>): boolean {
  return state !== 'leaving' && state !== 'standby';
}

function holdersOf(workers: readonly HeldWorker[], pool: string): Holder[] {
  const names = [...new Set(workers.map(({ model }) => model))];
  return names.map((name) => {
    const own = workers.filter(({ model }) => model === name);
    return { model: name, bytes: bytesOf(own, pool) };
  });
}

function bytesOf(workers: readonly HeldWorker[], pool: string): number {
  return workers.reduce((sum, { bytes }) => sum + (bytes.get(pool) ?? 0), 0);
}

function refusal(
  rule: RefuseWhy['rule'],
  { name, limitBytes, usedBytes }: Pool,
  bytes: number,
  holders: readonly Holder[],
): RefuseWhy {
  return { rule, pool: name, limitBytes, usedBytes, needBytes: null, bytes, holders };
}
