/**
 * The generations of a model's spec: the one in force, and the newest one, with which workers start. They differ while
 * workers are replaced one by one, until the first worker of the newest generation is ready.
 */
import type { WorkerHandle } from '../processes/worker-handle.js';
import { AppDescription } from './app-description.js';
import { asksForBatches, type ModelSpec } from './model-spec.js';

export class Generations {
  readonly #descriptionOf = new WeakMap<WorkerHandle, AppDescription>();
  #inForce: AppDescription;
  #newest: AppDescription;
  /** Number of replacements one by one that go on. */
  replacements = 0;

  constructor(spec: ModelSpec) {
    this.#inForce = new AppDescription(spec);
    this.#newest = this.#inForce;
  }

  /** The description of the app that answers calls now. */
  get inForce(): AppDescription {
    return this.#inForce;
  }

  /** The description with whose spec the next worker is started. */
  get newest(): AppDescription {
    return this.#newest;
  }

  /** Whether the newest generation is not in force yet: none of its workers was ready. */
  get isUntried(): boolean {
    return this.#newest !== this.#inForce;
  }

  /** The generation with which the worker was started; null for no worker. */
  of(worker: WorkerHandle | null): AppDescription | null {
    return worker === null ? null : (this.#descriptionOf.get(worker) ?? null);
  }

  /** Notes that the worker was started with the newest spec. */
  started(worker: WorkerHandle): void {
    this.#descriptionOf.set(worker, this.#newest);
  }

  /** Whether this worker can answer calls of the routes in force. */
  mayServe(worker: WorkerHandle): boolean {
    const app = this.of(worker);
    return app !== null && (app === this.#inForce || app.hasRoutesOf(this.#inForce));
  }

  /** Workers start with this spec from now on; it is in force once one of them is ready. */
  begin(spec: ModelSpec): AppDescription {
    this.#newest = new AppDescription(spec);
    return this.#newest;
  }

  /** As `begin`, but in force at once, without routes until a worker has loaded the app. */
  beginAtOnce(spec: ModelSpec): void {
    this.#inForce = this.begin(spec);
  }

  /** Changes options of the same app; the existing `workers` need not be replaced. @throws SERVE_CONFIG */
  change(spec: ModelSpec, workers: readonly WorkerHandle[]): void {
    const before = this.#newest;
    this.#newest = before.withOptionsOf(spec);
    this.#inForce = this.#newest;
    for (const worker of workers) if (this.of(worker) === before) this.started(worker);
  }

  /** Notes that the worker is ready. Returns whether that put its generation in force. */
  settle(worker: WorkerHandle): boolean {
    if (!this.isUntried || this.of(worker) !== this.#newest) return false;
    this.#inForce = this.#newest;
    return true;
  }

  /** Puts the newest generation in force although no worker of it was ready: no slot has an older one. */
  settleUntried(): void {
    this.#inForce = this.#newest;
  }

  /** Drops the newest generation, which has failed; the one in force stays. */
  takeBack(): void {
    this.#newest = this.#inForce;
  }
}

/** Whether workers that were started with `before` have to be replaced for `after`. */
export function needsNewWorkers(before: ModelSpec, after: ModelSpec): boolean {
  const parts = ({ name, version, app, appPlace, service, program, resolved }: ModelSpec): string => {
    // A service gets its batch size at the start, and may have allocated memory for no more.
    const sizeAtStart = service === null ? null : resolved.options.batchSize;
    const isAsked = program.hasCode === false && asksForBatches({ resolved });
    const { concurrency } = resolved.options; // a worker gets it at the start as well
    const started = { ...program, warnings: [] };
    return JSON.stringify([
      name,
      version,
      app,
      appPlace,
      service,
      started,
      sizeAtStart,
      isAsked,
      concurrency,
    ]);
  };
  return parts(before) !== parts(after);
}
