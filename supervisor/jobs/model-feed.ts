/** The jobs of one model that wait in the store: pulls them for the model's workers, and wakes it when one may be due. */
import type { BatchWorker } from '../dispatch/batcher.js';
import type { Call } from '../dispatch/call.js';
import type { JobFeed } from '../dispatch/job-feed.js';
import type { Begins } from './begins.js';
import { isMeant, type JobTarget, type WaitingPlace } from './job-record.js';
import type { JobStore } from './job-store.js';

/** A model, as its feed sees it. */
export interface FedModel {
  readonly name: string;
  /** Names the jobs that it can run now: it has no routes until its app is loaded, and while it takes no jobs. */
  target(): JobTarget;
  /** Whether the routes of its app are known. */
  isLoaded(): boolean;
  /** Looks whether a worker is free for a job. */
  pump(): void;
}

export class ModelFeed implements JobFeed {
  readonly #model: FedModel;
  readonly #store: JobStore;
  readonly #begins: Begins;
  /** The model takes no job any more. */
  readonly close: () => void;

  constructor(model: FedModel, store: JobStore, begins: Begins, close: () => void) {
    this.#model = model;
    this.#store = store;
    this.#begins = begins;
    this.close = close;
  }

  get model(): string {
    return this.#model.name;
  }

  get waiting(): number {
    if (!this.#store.hasDue(this.model) || !this.#begins.areAllowed) return 0;
    return this.#store.waiting(this.#model.target());
  }

  get needsApp(): boolean {
    if (this.#model.isLoaded() || !this.#store.hasDue(this.model) || !this.#begins.areAllowed) return false;
    return this.#store.places().some((place) => isMeant(place, this.#model.target()));
  }

  /** Whether the model runs the jobs of this place. */
  takes(place: WaitingPlace): boolean {
    const target = this.#model.target();
    return isMeant(place, target) && target.routes.has(place.route);
  }

  pull(worker: BatchWorker): Promise<readonly Call[]> {
    const { model, version, isDefault, routes } = this.#model.target();
    const sizes = new Map<string, number>();
    for (const [route, batch] of routes) sizes.set(route, Math.min(batch, worker.maxBatch(route)));
    return this.#begins.begin({ model, version, isDefault, routes: sizes });
  }

  /** A job of the model may be due. */
  wake(): void {
    this.#model.pump();
  }
}
