/** Finds what can never fit: a worker or a start that alone needs more than a budget, and workers that always stay. Pure. */
import type { BudgetFacts, HeldWorker, Holder, Pool, RefuseWhy, Step, WaitingStart } from './facts.js';

export function refusals<S>(facts: BudgetFacts<S>): Step<S>[] {
  return facts.pools.flatMap((pool) => {
    const alone = tooLargeAlone(facts, pool);
    return alone.length > 0 ? alone : tooLargeTogether(facts, pool);
  });
}

/** Whether the start of a renewal will never fit beside the workers that stay: those of its own model do. */
export function isHopeless<S>(facts: BudgetFacts<S>, { model, needs }: WaitingStart<S>): boolean {
  return facts.pools.some(({ name, limitBytes }) => {
    const own = facts.workers.filter((worker) => worker.model === model && stays(worker));
    const others = staying(facts, name).filter((worker) => worker.model !== model);
    return bytesOf([...own, ...others], name) + (needs.get(name) ?? 0) > limitBytes;
  });
}

function tooLargeAlone<S>({ workers }: BudgetFacts<S>, pool: Pool): Step<S>[] {
  return workers
    .filter(({ state, bytes }) => mayEnd(state) && (bytes.get(pool.name) ?? 0) > pool.limitBytes)
    .map(({ id, bytes }) => {
      const why = refusal('alone', pool, bytes.get(pool.name) ?? 0, []);
      return { kind: 'refuseWorker', id, why };
    });
}

function tooLargeTogether<S>(facts: BudgetFacts<S>, pool: Pool): Step<S>[] {
  const stay = staying(facts, pool.name);
  const heldBytes = bytesOf(stay, pool.name);
  const holders = holdersOf(stay, pool.name);
  const hopeless = facts.starts.filter(
    ({ model, kind, needs, sinceMs }) =>
      kind === 'first' &&
      pool.readAtMs >= sinceMs &&
      pinnedOf(facts, model) > 0 &&
      isBelow(facts, model) &&
      heldBytes + (needs.get(pool.name) ?? 0) > pool.limitBytes,
  );
  const [start] = hopeless;
  if (start !== undefined) {
    const bytes = heldBytes + (start.needs.get(pool.name) ?? 0);
    const why = {
      ...refusal('together', pool, bytes, holders),
      needBytes: start.needs.get(pool.name) ?? null,
    };
    return [{ kind: 'refuseStart', start: start.start, why }];
  }
  if (heldBytes <= pool.limitBytes) return [];
  const [newest] = stay
    .filter(({ state, isProven }) => mayEnd(state) && !isProven)
    .sort((a, b) => b.sinceMs - a.sinceMs);
  if (newest === undefined) return []; // they have grown since: none of them is ended for that
  return [{ kind: 'refuseWorker', id: newest.id, why: refusal('together', pool, heldBytes, holders) }];
}

/** The workers that always stay. Of models that have more than they keep, the smallest. */
function staying<S>({ workers, models }: BudgetFacts<S>, pool: string): HeldWorker[] {
  return models.flatMap(({ name, pinned }) =>
    workers
      .filter(({ model, state }) => model === name && stays({ state }))
      .sort((a, b) => (a.bytes.get(pool) ?? 0) - (b.bytes.get(pool) ?? 0))
      .slice(0, pinned),
  );
}

function pinnedOf<S>({ models }: BudgetFacts<S>, model: string): number {
  return models.find(({ name }) => name === model)?.pinned ?? 0;
}

function isBelow<S>(facts: BudgetFacts<S>, model: string): boolean {
  const count = facts.workers.filter((worker) => worker.model === model && stays(worker)).length;
  return count < pinnedOf(facts, model);
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
  return names.map((model) => ({
    model,
    bytes: bytesOf(
      workers.filter((worker) => worker.model === model),
      pool,
    ),
  }));
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
