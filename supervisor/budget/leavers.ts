/** Chooses who leaves when memory is lacking: spares, then workers that stand by, then idle ones, then busy ones whose turn is over. Pure. */
import type { BudgetFacts, BytesByPool, HeldWorker, HoldingModel } from './facts.js';

/** Memory for a start, or for what is used beyond the budget. */
export interface Demand {
  /** Null: more than the budget is used. */
  readonly model: string | null;
  readonly sinceMs: number;
  readonly needs: ReadonlyMap<string, number>;
  /** Whether workers of the same model that stand by leave for it: one that is replaced stays meanwhile. */
  readonly isRenewal: boolean;
  /** Whether busy workers leave for it when their turn is over. */
  readonly takesTurns: boolean;
  readonly queueTimeoutMs: number;
}

export interface Leaver {
  readonly id: number;
  readonly bytes: BytesByPool;
  readonly rule: 'memory' | 'turn';
  /** Time for which it has been idle; with `turn`, for which the other one has waited. */
  readonly ms: number;
}

/** A model keeps its memory for so many of its start times while another one waits: then starts take a tenth of the time at most. */
const TURN_STARTS = 10;

/** At most this part of the queue timeout of the model that waits. */
const TURN_SHARE = 1 / 4;

/** When the turn of a worker ends while a model waits since `sinceMs`. */
export function lastsUntilMs(
  worker: Pick<HeldWorker, 'sinceMs'>,
  startMs: number,
  demand: Pick<Demand, 'sinceMs' | 'queueTimeoutMs'>,
): number {
  const turnMs = Math.min(TURN_STARTS * startMs, TURN_SHARE * demand.queueTimeoutMs);
  return Math.max(worker.sinceMs, demand.sinceMs) + turnMs;
}

export class Leavers {
  readonly #facts: BudgetFacts<unknown>;
  readonly #models: ReadonlyMap<string, HoldingModel>;
  readonly #gone = new Set<number>();
  /** So many workers of each model may still leave. */
  readonly #mayLeave: Map<string, number>;

  constructor(facts: BudgetFacts<unknown>) {
    this.#facts = facts;
    this.#models = new Map(facts.models.map((model) => [model.name, model]));
    this.#mayLeave = new Map(facts.models.map(({ name, mayLeave }) => [name, mayLeave]));
  }

  modelOf(name: string): HoldingModel | undefined {
    return this.#models.get(name);
  }

  /** The fewest and least needed that hold what is missing; none if all together hold less. They are not chosen again. */
  choose(demand: Demand, missing: BytesByPool): Leaver[] {
    const left = new Map(this.#mayLeave);
    const chosen: Candidate[] = [];
    for (const leaver of this.#inOrder(demand)) {
      if (holdsEnough(chosen, missing)) break;
      const isOfUse = [...missing.keys()].some((pool) => (leaver.bytes.get(pool) ?? 0) > 0);
      if (isOfUse && this.#mayGo(leaver, left)) chosen.push(leaver);
    }
    if (!holdsEnough(chosen, missing)) return [];
    const needed = withoutSpared(chosen, missing);
    for (const { id, model, isCounted } of needed) {
      this.#gone.add(id);
      if (isCounted) this.#mayLeave.set(model, (this.#mayLeave.get(model) ?? 0) - 1);
    }
    return needed;
  }

  #mayGo({ id, model, isCounted }: Candidate, left: Map<string, number>): boolean {
    if (this.#gone.has(id)) return false;
    if (!isCounted) return true;
    const count = left.get(model) ?? 0;
    left.set(model, count - 1);
    return count > 0;
  }

  /** Processes that may leave for it, the first to leave first. */
  #inOrder(demand: Demand): Candidate[] {
    const { workers, expendables, nowMs } = this.#facts;
    const others = workers.filter(
      ({ model, state }) => model !== demand.model || (demand.isRenewal && state === 'standby'),
    );
    const spares = expendables.map((one): Candidate => ({
      ...one,
      model: '',
      isCounted: false,
      rule: 'memory',
      ms: 0,
    }));
    // Least recently used first; a worker whose start takes longer stays longer.
    const [standbys, idle] = (['standby', 'idle'] as const).map((name) =>
      others
        .filter(({ state }) => state === name)
        .map((worker) => ({ ...candidate(worker), rule: 'memory' as const, ms: nowMs - worker.idleSinceMs }))
        .sort((a, b) => b.ms / this.#startMs(b) - a.ms / this.#startMs(a)),
    ) as [Candidate[], Candidate[]];
    const waitedMs = nowMs - demand.sinceMs;
    const due = others
      .filter(({ state }) => demand.takesTurns && state === 'busy')
      .map((worker) => ({ worker, endMs: lastsUntilMs(worker, this.#startMs(worker), demand) }))
      .filter(({ endMs }) => endMs <= nowMs)
      .sort((a, b) => a.endMs - b.endMs)
      .map(({ worker }) => ({ ...candidate(worker), rule: 'turn' as const, ms: waitedMs }));
    return [...spares, ...standbys, ...idle, ...due];
  }

  #startMs({ model }: { readonly model: string }): number {
    return Math.max(1, this.#models.get(model)?.startMs ?? 1);
  }
}

interface Candidate extends Leaver {
  readonly model: string;
  /** Whether its model may spare only so many of its kind: not of spares and of those that stand by. */
  readonly isCounted: boolean;
}

function candidate({ id, bytes, model, state }: HeldWorker): Omit<Candidate, 'rule' | 'ms'> {
  return { id, bytes, model, isCounted: state !== 'standby' };
}

function holdsEnough(leavers: readonly Leaver[], missing: BytesByPool): boolean {
  return [...missing].every(
    ([pool, bytes]) => leavers.reduce((sum, leaver) => sum + (leaver.bytes.get(pool) ?? 0), 0) >= bytes,
  );
}

/** Without those that are not needed, from the last one on: a later one may hold enough for several. */
function withoutSpared(chosen: readonly Candidate[], missing: BytesByPool): Candidate[] {
  let needed = [...chosen];
  for (const leaver of [...chosen].reverse()) {
    const others = needed.filter((one) => one !== leaver);
    if (holdsEnough(others, missing)) needed = others;
  }
  return needed;
}
