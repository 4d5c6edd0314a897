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
  readonly version: string;
  /** Whether jobs that name no version are for this one. */
  isDefault(): boolean;
  /**
   * The routes of its app that can be called, each with the most calls of a batch; empty until it is loaded, and while it
   * takes no jobs.
   */
  routes(): ReadonlyMap<string, number>;
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
    if (!this.#store.hasDue(this.#model.name) || !this.#begins.areAllowed) return 0;
    return this.#store.waiting(this.#target());
  }

  get needsApp(): boolean {
    const { name, isLoaded } = this.#model;
    if (isLoaded() || !this.#store.hasDue(name) || !this.#begins.areAllowed) return false;
    return this.#store.places().some((place) => isMeant(place, this.#target()));
  }

  /** Whether the model runs the jobs of this place. */
  takes(place: WaitingPlace): boolean {
    const target = this.#target();
    return isMeant(place, target) && target.routes.has(place.route);
  }

  pull(worker: BatchWorker): Promise<readonly Call[]> {
    const { routes, ...target } = this.#target();
    const sizes = Array.from(
      routes,
      ([route, batch]) => [route, Math.min(batch, worker.maxBatch(route))] as const,
    );
    return this.#begins.begin({ ...target, routes: new Map(sizes) });
  }

  /** A job of the model may be due. */
  wake(): void {
    this.#model.pump();
  }

  #target(): JobTarget {
    const { name, version } = this.#model;
    const [isDefault, routes] = [this.#model.isDefault(), this.#model.routes()];
    return { model: name, version, isDefault, routes };
  }
}
