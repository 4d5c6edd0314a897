/**
 * The memory that a start of each model takes, learnt anew by each server: the most that a worker was seen to hold, while it
 * started too. A model's first worker also takes what its workers share.
 */

export interface StartCost {
  readonly model: string;
  readonly pool: string;
  /** Null until its only worker was measured. */
  readonly firstBytes: number | null;
  /** Null until a worker was measured beside another one. */
  readonly moreBytes: number | null;
  /** The least that a worker held once it was ready: calls may have made others grow. */
  readonly readyBytes: number | null;
}

export class StartCosts {
  readonly #costs = new Map<string, StartCost>();

  /** A worker holds so many bytes. `isOnly`: its model has no other one. */
  learn(model: string, pool: string, isOnly: boolean, bytes: number): void {
    const key = keyOf(model, pool);
    const before = this.#costs.get(key) ?? newCost(model, pool);
    const name = isOnly ? 'firstBytes' : 'moreBytes';
    this.#costs.set(key, { ...before, [name]: Math.max(before[name] ?? 0, bytes) });
  }

  /** A worker has become ready, and holds so many bytes. */
  learnReady(model: string, pool: string, bytes: number): void {
    const key = keyOf(model, pool);
    const before = this.#costs.get(key) ?? newCost(model, pool);
    this.#costs.set(key, { ...before, readyBytes: Math.min(before.readyBytes ?? Infinity, bytes) });
  }

  /** Null if it is not known. */
  find(model: string, pool: string, isFirst: boolean): number | null {
    const { firstBytes = null, moreBytes = null } = this.#costs.get(keyOf(model, pool)) ?? {};
    return isFirst ? (firstBytes ?? moreBytes) : (moreBytes ?? firstBytes);
  }

  /** The least with which a worker was ready; null if it is not known. */
  findLeast(model: string, pool: string): number | null {
    return this.#costs.get(keyOf(model, pool))?.readyBytes ?? null;
  }

  forget(model: string): void {
    for (const [key, cost] of this.#costs) if (cost.model === model) this.#costs.delete(key);
  }

  all(): StartCost[] {
    return [...this.#costs.values()];
  }
}

function newCost(model: string, pool: string): StartCost {
  return { model, pool, firstBytes: null, moreBytes: null, readyBytes: null };
}

function keyOf(model: string, pool: string): string {
  return `${pool} ${model}`;
}
