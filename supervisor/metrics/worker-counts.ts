/** Counts restarts of workers per model and cause of the previous worker's death. */
import type { Model } from '../models/model.js';
import type { DeathCause } from '../processes/exit-report.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import type { Slot } from '../slots/slot.js';

export class WorkerCounts {
  readonly #restarts = new WeakMap<Model, Map<DeathCause, number>>();

  restartsOf(model: Model): ReadonlyMap<DeathCause, number> {
    return this.#restarts.get(model) ?? new Map();
  }

  died(model: Model, { isKept, state }: Slot, { wanted, cause }: WorkerDeath): void {
    if (wanted || !isKept || state.name === 'latched') return; // it is not replaced
    const restarts = this.#restarts.get(model) ?? new Map<DeathCause, number>();
    restarts.set(cause, (restarts.get(cause) ?? 0) + 1);
    this.#restarts.set(model, restarts);
  }
}
