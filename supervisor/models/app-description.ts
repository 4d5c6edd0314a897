/**
 * The description of an app, as a worker sends it after loading: routes, options, an example. Each generation of a model has
 * one: the workers that were started with the same spec share it.
 */
import { configError } from '../../protocol/errors.js';
import type { LoadedInfo, Route } from '../../protocol/wire/messages.js';
import { withAppConfig, type ModelOptions } from '../options/resolve.js';
import type { ModelSpec } from './model-spec.js';

/** The routes of an app, by path. */
export type Routes = ReadonlyMap<string, Route>;

export class AppDescription {
  readonly spec: ModelSpec;
  #options: ModelOptions;
  #routes: Routes | null = null;
  #batchSizes: ReadonlyMap<string, number> = new Map();
  #info: LoadedInfo | null = null;
  #skipsWarmUp = false;

  constructor(spec: ModelSpec) {
    this.spec = spec;
    this.#options = spec.resolved.options;
  }

  /** Options in force: the operator's over the app's. */
  get options(): ModelOptions {
    return this.#options;
  }

  /** The routes of `info` by path; null until a worker has loaded the app. */
  get routes(): Routes | null {
    return this.#routes;
  }

  /** The routes that can be called over HTTP, each with the most calls of a batch; empty until a worker has loaded the app. */
  get batchSizes(): ReadonlyMap<string, number> {
    return this.#batchSizes;
  }

  /** The app's description of itself; null until a worker has loaded it. */
  get info(): LoadedInfo | null {
    return this.#info;
  }

  /** Whether the app may have a `shutdown` to run; false if no worker has loaded it. */
  get hasShutdown(): boolean {
    return this.#info !== null && this.#info.shutdown !== false;
  }

  /** Whether batches are configured, but no route of the app takes them. */
  get isBatchless(): boolean {
    const routes = [...(this.#routes?.values() ?? [])];
    return this.#options.batchSize > 1 && routes.every(({ maxBatch }) => maxBatch === 1);
  }

  /** Whether the operator allows several calls at the same time, but the app runs one after the other. */
  get isSerial(): boolean {
    return (this.#options.concurrency ?? 1) > 1 && (this.#info?.concurrency ?? 1) === 1;
  }

  /** Whether workers start without a warm-up, because one has died or hung in it. */
  get skipsWarmUp(): boolean {
    return this.#skipsWarmUp;
  }

  skipWarmUp(): void {
    this.#skipsWarmUp = true;
  }

  /** Takes the description from a worker. @throws SERVE_CONFIG if the app's options are wrong; then nothing has changed */
  update(info: LoadedInfo): void {
    const options = withAppConfig(this.spec.resolved, info.modelOptions, this.spec.app);
    assertNoBatches(info, options, this.spec);
    this.#options = options;
    this.#info = info;
    this.#routes = new Map(info.routes.map((route) => [route.path, route]));
    const { batchSize } = this.#options;
    const callable = info.routes.filter(({ kind }) => kind !== 'websocket');
    this.#batchSizes = new Map(callable.map(({ path, maxBatch }) => [path, Math.min(batchSize, maxBatch)]));
  }

  /** Returns the description of the same app under the options of another spec. @throws SERVE_CONFIG */
  withOptionsOf(spec: ModelSpec): AppDescription {
    const description = new AppDescription(spec);
    if (this.#info !== null) description.update(this.#info);
    description.#skipsWarmUp = this.#skipsWarmUp;
    return description;
  }

  /** Whether both apps have the same routes. */
  hasRoutesOf(other: AppDescription): boolean {
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

function routesText({ routes }: AppDescription): string {
  const entries = [...(routes ?? [])].map(([path, route]) => JSON.stringify([path, route]));
  return entries.sort().join('\n');
}
