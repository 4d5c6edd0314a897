/** The jobs of one model that wait in the store: pulls them for the model's workers, and wakes it when one may be due. */
import type { ServeError } from '../../protocol/errors.js';
import type { BatchWorker } from '../dispatch/batcher.js';
import type { Job } from '../dispatch/job.js';
import type { JobFeed } from '../dispatch/job-feed.js';
import { keptError, type JobTarget } from './job-record.js';
import type { JobStore } from './job-store.js';

/** A model, as its feed sees it. */
export interface FedModel {
  readonly name: string;
  readonly version: string;
  /** The routes of its app that can be called, each with the most calls of a batch; empty until it is loaded. */
  routes(): ReadonlyMap<string, number>;
  /** Looks whether a worker is free for a job. */
  pump(): void;
}

export interface FeedOwner {
  /** Begins the next jobs of a target in the store. Never rejects. */
  begin(target: JobTarget): Promise<readonly Job[]>;
  onClosed(): void;
}

export class ModelFeed implements JobFeed {
  readonly #model: FedModel;
  readonly #store: JobStore;
  readonly #owner: FeedOwner;
  #pulls = 0;

  constructor(model: FedModel, store: JobStore, owner: FeedOwner) {
    this.#model = model;
    this.#store = store;
    this.#owner = owner;
  }

  get model(): string {
    return this.#model.name;
  }

  get mayHaveDue(): boolean {
    return this.waiting > this.#pulls;
  }

  get waiting(): number {
    return this.#store.waiting(this.#target());
  }

  async pull(worker: BatchWorker): Promise<readonly Job[]> {
    const { routes, ...target } = this.#target();
    const sizes = Array.from(
      routes,
      ([route, batch]) => [route, Math.min(batch, worker.maxBatch(route))] as const,
    );
    this.#pulls += 1;
    const jobs = await this.#owner.begin({ ...target, routes: new Map(sizes) });
    this.#pulls -= 1;
    return jobs;
  }

  failWaiting(error: ServeError): void {
    this.#store.failWaiting(this.#target(), keptError(error));
  }

  close(): void {
    this.#owner.onClosed();
  }

  /** A job of the model may be due. */
  wake(): void {
    this.#model.pump();
  }

  #target(): JobTarget {
    return { model: this.#model.name, version: this.#model.version, routes: this.#model.routes() };
  }
}
