/**
 * The generations of a model's spec, each with the description of its app: the one in force, and the newest one, with which
 * workers start. They differ while workers are replaced one by one, until the first worker of the newest generation is ready.
 */
import { configError } from '../../protocol/errors.js';
import type { LoadedInfo, Route } from '../../protocol/wire/messages.js';
import { withAppConfig, type ModelOptions } from '../options/resolve.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import { asksForBatches, type ModelSpec } from './model-spec.js';

export class Generations {
  /** The one that answers calls now. */
  inForce: Generation;
  /** The one with whose spec the next worker is started. */
  newest: Generation;
  /** Number of replacements one by one that go on. */
  replacements = 0;
  readonly #of = new WeakMap<WorkerHandle, Generation>();

  constructor(spec: ModelSpec) {
    this.inForce = new Generation(spec);
    this.newest = this.inForce;
  }

  /** Whether the newest generation is not in force yet: none of its workers was ready. */
  get isUntried(): boolean {
    return this.newest !== this.inForce;
  }

  /** The generation with which the worker was started; null for no worker. */
  of(worker: WorkerHandle | null): Generation | null {
    return worker === null ? null : (this.#of.get(worker) ?? null);
  }

  /** Notes that the worker was started with the newest spec. */
  started(worker: WorkerHandle): void {
    this.#of.set(worker, this.newest);
  }

  /** Whether this worker can answer calls of the routes in force. */
  mayServe(worker: WorkerHandle): boolean {
    const app = this.of(worker);
    return app !== null && (app === this.inForce || app.hasRoutesOf(this.inForce));
  }

  /** Workers start with this spec from now on; it is in force once one of them is ready. */
  begin(spec: ModelSpec): Generation {
    this.newest = new Generation(spec);
    return this.newest;
  }

  /** As `begin`, but in force at once, without routes until a worker has loaded the app. */
  beginAtOnce(spec: ModelSpec): void {
    this.inForce = this.begin(spec);
  }

  /** Changes options of the same app; the existing `workers` need not be replaced. @throws SERVE_CONFIG */
  change(spec: ModelSpec, workers: readonly WorkerHandle[]): void {
    const before = this.newest;
    this.newest = before.withOptionsOf(spec);
    this.inForce = this.newest;
    for (const worker of workers) if (this.of(worker) === before) this.started(worker);
  }

  /** Notes that the worker is ready. Returns whether that put its generation in force. */
  settle(worker: WorkerHandle): boolean {
    if (!this.isUntried || this.of(worker) !== this.newest) return false;
    this.inForce = this.newest;
    return true;
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
    return JSON.stringify({
      name,
      version,
      app,
      appPlace,
      service,
      started,
      sizeAtStart,
      isAsked,
      concurrency,
    });
  };
  return parts(before) !== parts(after);
}

/** The routes of an app, by path. */
export type Routes = ReadonlyMap<string, Route>;

/**
 * One generation: a spec, and the description of its app, as a worker sends it after loading: routes, options, an example. The
 * workers that were started with the same spec share it.
 */
export class Generation {
  readonly spec: ModelSpec;
  /** Options in force: the operator's over the app's. */
  options: ModelOptions;
  /** The routes of `info` by path; null until a worker has loaded the app. */
  routes: Routes | null = null;
  /** The routes that can be called over HTTP, each with the most calls of a batch; empty until a worker has loaded the app. */
  batchSizes: ReadonlyMap<string, number> = new Map();
  /** The app's description of itself; null until a worker has loaded it. */
  info: LoadedInfo | null = null;
  /** Whether workers start without a warm-up, because one has died or hung in it. */
  skipsWarmUp = false;

  constructor(spec: ModelSpec) {
    this.spec = spec;
    this.options = spec.resolved.options;
  }

  /** Whether the app may have a `shutdown` to run; false if no worker has loaded it. */
  get hasShutdown(): boolean {
    return this.info !== null && this.info.shutdown !== false;
  }

  /** Whether batches are configured, but no route of the app takes them. */
  get isBatchless(): boolean {
    const routes = [...(this.routes?.values() ?? [])];
    return this.options.batchSize > 1 && routes.every(({ maxBatch }) => maxBatch === 1);
  }

  /** Whether the operator allows several calls at the same time, but the app runs one after the other. */
  get isSerial(): boolean {
    return (this.options.concurrency ?? 1) > 1 && (this.info?.concurrency ?? 1) === 1;
  }

  /** Takes the description from a worker. @throws SERVE_CONFIG if the app's options are wrong; then nothing has changed */
  update(info: LoadedInfo): void {
    const options = withAppConfig(this.spec.resolved, info.modelOptions, this.spec.app);
    assertNoBatches(info, options, this.spec);
    this.options = options;
    const task = info.task ?? options.task;
    this.info = task === null ? info : { ...info, task };
    this.routes = new Map(info.routes.map((route) => [route.path, route]));
    const callable = info.routes.filter(({ kind }) => kind !== 'websocket');
    this.batchSizes = new Map(
      callable.map(({ path, maxBatch }) => [path, Math.min(options.batchSize, maxBatch)]),
    );
  }

  /** Returns the description of the same app under the options of another spec. @throws SERVE_CONFIG */
  withOptionsOf(spec: ModelSpec): Generation {
    const description = new Generation(spec);
    if (this.info !== null) description.update(this.info);
    description.skipsWarmUp = this.skipsWarmUp;
    return description;
  }

  /** Whether both apps have the same routes. */
  hasRoutesOf(other: Generation): boolean {
    return routesText(this) === routesText(other);
  }
}

/** @throws SERVE_CONFIG for calls that would run both at the same time and in batches */
function assertNoBatches(
  { concurrency = 1 }: LoadedInfo,
  { batchSize }: ModelOptions,
  { app, resolved }: ModelSpec,
): void {
  if (concurrency === 1 || batchSize === 1) return;
  const size = `${resolved.explicit.get('batchSize') ?? 'config.batchSize'} is ${batchSize}`;
  throw configError(
    `${app}: config.concurrency is ${concurrency} and ${size}, but calls run either at the same time or in batches. Set --concurrency 1 or a batch size of 1.`,
  );
}

function routesText({ routes }: Generation): string {
  const entries = [...(routes ?? [])].map(([path, route]) => JSON.stringify([path, route]));
  return entries.sort().join('\n');
}
