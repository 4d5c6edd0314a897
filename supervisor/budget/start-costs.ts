/** The memory that a start of each model takes, learnt anew by each server. A model's first worker also takes what its workers share. */

export interface StartCost {
  readonly model: string;
  readonly pool: string;
  /** Null until its only worker was measured. */
  readonly firstBytes: number | null;
  /** Null until a worker was measured beside another one. */
  readonly moreBytes: number | null;
}

export class StartCosts {
  readonly #costs = new Map<string, StartCost>();

  /** A worker holds so many bytes. `isOnly`: its model has no other one. */
  learn(model: string, pool: string, isOnly: boolean, bytes: number): void {
    const key = keyOf(model, pool);
    const before = this.#costs.get(key) ?? { model, pool, firstBytes: null, moreBytes: null };
    const name = isOnly ? 'firstBytes' : 'moreBytes';
    this.#costs.set(key, { ...before, [name]: Math.max(before[name] ?? 0, bytes) });
  }

  /** Null if it is not known. */
  find(model: string, pool: string, isFirst: boolean): number | null {
    const { firstBytes = null, moreBytes = null } = this.#costs.get(keyOf(model, pool)) ?? {};
    return isFirst ? (firstBytes ?? moreBytes) : (moreBytes ?? firstBytes);
  }

  /** A model of this name is another one from now on. */
  forget(model: string): void {
    for (const [key, cost] of this.#costs) if (cost.model === model) this.#costs.delete(key);
  }

  all(): StartCost[] {
    return [...this.#costs.values()];
  }
}

function keyOf(model: string, pool: string): string {
  return `${pool} ${model}`;
}
