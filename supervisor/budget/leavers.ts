/** Chooses who leaves when memory is lacking: spares, then workers that stand by, then idle ones, then busy ones whose turn is over. Pure. */
import type { BudgetFacts, BudgetedFacts, Claim, HeldWorker } from './facts.js';

export interface Leaver {
  readonly id: number;
  readonly bytes: ReadonlyMap<string, number>;
  /** Empty: it is a spare. */
  readonly model: string;
  readonly rule: 'memory' | 'turn';
  /** Time for which it has been idle; with `turn`, for which the other one has waited. */
  readonly ms: number;
  /** Whether its model may spare only so many of its kind: not of spares and of those that stand by. */
  readonly isCounted: boolean;
}

/** A model keeps its memory for so many of its start times while another one waits: then starts take a tenth of the time at most. */
const TURN_STARTS = 10;

/** At most this part of the queue timeout of the model that waits. */
const TURN_SHARE = 1 / 4;

export class Leavers {
  readonly #facts: BudgetFacts;
  readonly #models: ReadonlyMap<string, BudgetedFacts>;
  readonly #gone = new Set<number>();
  /** So many workers of each model may still leave. */
  readonly #mayLeave: Map<string, number>;

  constructor(facts: BudgetFacts) {
    this.#facts = facts;
    this.#models = new Map(facts.models.map((model) => [model.name, model]));
    this.#mayLeave = new Map(facts.models.map(({ name, mayLeave }) => [name, mayLeave]));
  }

  /** The fewest and least needed that hold what is missing; none if all together hold less. They are not chosen again. */
  choose(claim: Claim, missing: ReadonlyMap<string, number>): Leaver[] {
    const left = new Map(this.#mayLeave);
    const chosen: Leaver[] = [];
    for (const leaver of this.#inOrder(claim)) {
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

  /** When the turn of a busy worker ends for this claim; of what exceeds the budget, for the model of the newest worker. */
  turnEndsMs(worker: HeldWorker, { model, sinceMs }: Claim): number {
    const waiting = this.#models.get(model ?? this.#newestModel);
    const share = TURN_SHARE * (waiting?.queueTimeoutMs ?? Infinity);
    return Math.max(worker.sinceMs, sinceMs) + Math.min(TURN_STARTS * this.#startMs(worker), share);
  }

  get #newestModel(): string {
    const newest = this.#facts.workers.toSorted((a, b) => b.sinceMs - a.sinceMs)[0];
    return newest?.model ?? '';
  }

  #mayGo({ id, model, isCounted }: Leaver, left: Map<string, number>): boolean {
    if (this.#gone.has(id)) return false;
    if (!isCounted) return true;
    const count = left.get(model) ?? 0;
    left.set(model, count - 1);
    return count > 0;
  }

  /** Processes that may leave for it, the first to leave first. */
  #inOrder(claim: Claim): Leaver[] {
    const { workers, expendables, nowMs } = this.#facts;
    const others = workers.filter(
      ({ model, state }) => model !== claim.model || (claim.kind === 'renewal' && state === 'standby'),
    );
    const spares = expendables.map((one): Leaver => ({
      ...one,
      model: '',
      rule: 'memory',
      ms: 0,
      isCounted: false,
    }));
    // Least recently used first; a worker whose start takes longer stays longer.
    const unused = (name: 'standby' | 'idle'): Leaver[] =>
      others
        .filter(({ state }) => state === name)
        .map(({ id, bytes, model, idleSinceMs }): Leaver => {
          return { id, bytes, model, rule: 'memory', ms: nowMs - idleSinceMs, isCounted: name === 'idle' };
        })
        .sort((a, b) => b.ms / this.#startMs(b) - a.ms / this.#startMs(a));
    const due = others
      .filter(({ state }) => claim.kind !== 'extra' && state === 'busy')
      .map((worker) => ({ worker, endMs: this.turnEndsMs(worker, claim) }))
      .filter(({ endMs }) => endMs <= nowMs)
      .sort((a, b) => a.endMs - b.endMs)
      .map(({ worker: { id, bytes, model } }): Leaver => {
        return { id, bytes, model, rule: 'turn', ms: nowMs - claim.sinceMs, isCounted: true };
      });
    return [...spares, ...unused('standby'), ...unused('idle'), ...due];
  }

  #startMs({ model }: { readonly model: string }): number {
    return Math.max(1, this.#models.get(model)?.startMs ?? 1);
  }
}

function holdsEnough(leavers: readonly Leaver[], missing: ReadonlyMap<string, number>): boolean {
  return [...missing].every(
    ([pool, bytes]) => leavers.reduce((sum, leaver) => sum + (leaver.bytes.get(pool) ?? 0), 0) >= bytes,
  );
}

/** Without those that are not needed, from the last one on: a later one may hold enough for several. */
function withoutSpared(chosen: readonly Leaver[], missing: ReadonlyMap<string, number>): Leaver[] {
  let needed = [...chosen];
  for (const leaver of [...chosen].reverse()) {
    const others = needed.filter((one) => one !== leaver);
    if (holdsEnough(others, missing)) needed = others;
  }
  return needed;
}
