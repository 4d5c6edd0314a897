/**
 * What an app has said of itself once a worker has loaded it: its routes, its options, an example. One for each
 * generation of a model: workers that were started with one spec share it.
 */
import type { LoadedInfo, Route } from '../../protocol/wire/messages.js';
import { withAppConfig, type ModelOptions } from '../options/resolve.js';
import type { ModelSpec } from './model-spec.js';

/** The routes of an app, by path. */
export type Routes = ReadonlyMap<string, Route>;

export class AppDescription {
  readonly spec: ModelSpec;
  #options: ModelOptions;
  #routes: Routes | null = null;
  #info: LoadedInfo | null = null;

  constructor(spec: ModelSpec) {
    this.spec = spec;
    this.#options = spec.resolved.options;
  }

  /** Options in force: the operator's over the app's. */
  get options(): ModelOptions {
    return this.#options;
  }

  /** Null until a worker has loaded the app. */
  get routes(): Routes | null {
    return this.#routes;
  }

  /** A sample input as JSON, to show a person; empty if the app has none. */
  get example(): string {
    return this.#info?.example ?? '';
  }

  /** Batches are asked for, and no route of the app takes any. */
  get isBatchless(): boolean {
    const routes = [...(this.#routes?.values() ?? [])];
    return this.#options.batchSize > 1 && routes.every(({ maxBatch }) => maxBatch === 1);
  }

  /** @throws SERVE_CONFIG if the app's options are wrong; then nothing has changed */
  update(info: LoadedInfo): void {
    this.#options = withAppConfig(this.spec.resolved, info.modelOptions, this.spec.app);
    this.#info = info;
    this.#routes = new Map(info.routes.map((route) => [route.path, route]));
  }

  /** The same app has said the same, under other options of the operator's. @throws SERVE_CONFIG */
  withOptionsOf(spec: ModelSpec): AppDescription {
    const word = new AppDescription(spec);
    if (this.#info !== null) word.update(this.#info);
    return word;
  }

  /** Whether every call that this app answers, and no other, is one for that app. */
  hasRoutesOf(other: AppDescription): boolean {
    return routesText(this) === routesText(other);
  }
}

function routesText({ routes }: AppDescription): string {
  const entries = [...(routes ?? [])].map(([path, route]) => JSON.stringify([path, route]));
  return entries.sort().join('\n');
}
