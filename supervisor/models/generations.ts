/**
 * The generations of a model's spec: the one in force, and the newest, with which workers start. They differ while the
 * workers are being replaced one by one, until the first of the newest generation is ready.
 */
import type { WorkerHandle } from '../processes/worker-handle.js';
import { AppDescription } from './app-description.js';
import type { ModelSpec } from './model-spec.js';

export class Generations {
  readonly #wordOf = new WeakMap<WorkerHandle, AppDescription>();
  #inForce: AppDescription;
  #newest: AppDescription;

  constructor(spec: ModelSpec) {
    this.#inForce = new AppDescription(spec);
    this.#newest = this.#inForce;
  }

  /** What the app said that answers calls now. */
  get inForce(): AppDescription {
    return this.#inForce;
  }

  /** What the next worker is started with, and will say. */
  get newest(): AppDescription {
    return this.#newest;
  }

  /** No worker of the newest generation was ready yet, and one before it is in force. */
  get isUntried(): boolean {
    return this.#newest !== this.#inForce;
  }

  /** The generation that the worker was started with; null for no worker. */
  of(worker: WorkerHandle | null): AppDescription | null {
    return worker === null ? null : (this.#wordOf.get(worker) ?? null);
  }

  /** The worker was started with the newest spec. */
  started(worker: WorkerHandle): void {
    this.#wordOf.set(worker, this.#newest);
  }

  /** A call that fits the routes in force may be given to this worker. */
  mayServe(worker: WorkerHandle): boolean {
    const word = this.of(worker);
    return word !== null && (word === this.#inForce || word.hasRoutesOf(this.#inForce));
  }

  /** Workers start with this spec from now on; it is in force once one of them is ready. */
  begin(spec: ModelSpec): AppDescription {
    this.#newest = new AppDescription(spec);
    return this.#newest;
  }

  /** Nothing that was said before holds any more. */
  beginAtOnce(spec: ModelSpec): void {
    this.#inForce = this.begin(spec);
  }

  /** The same app under other options: `workers`, those that there are, need not be replaced. @throws SERVE_CONFIG */
  change(spec: ModelSpec, workers: readonly WorkerHandle[]): void {
    const before = this.#newest;
    this.#newest = before.withOptionsOf(spec);
    this.#inForce = this.#newest;
    for (const worker of workers) if (this.of(worker) === before) this.started(worker);
  }

  /** The worker is ready. Returns whether its generation is in force only now. */
  settle(worker: WorkerHandle): boolean {
    if (!this.isUntried || this.of(worker) !== this.#newest) return false;
    this.#inForce = this.#newest;
    return true;
  }

  /** The newest one is in force though no worker of it was ready: there is none before it. */
  settleUntried(): void {
    this.#inForce = this.#newest;
  }

  /** The newest one has failed: the one in force stays. */
  takeBack(): void {
    this.#newest = this.#inForce;
  }
}

/** Whether a worker that was started with one of these would not do for the other. */
export function needsNewWorkers(before: ModelSpec, after: ModelSpec): boolean {
  const parts = ({ name, version, app, appPlace, service, program, resolved }: ModelSpec): string => {
    // A service is told at its start how many calls it may be given, and may have made room for no more.
    const told = service === null ? null : resolved.options.batchSize;
    const started = { ...program, warnings: [] };
    return JSON.stringify([name, version, app, appPlace, service, started, told]);
  };
  return parts(before) !== parts(after);
}
