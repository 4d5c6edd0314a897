/** What an app has said of itself once a worker has loaded it: its routes, its options, an example. */
import type { LoadedInfo, Route } from '../../protocol/messages.js';
import { withAppConfig, type ModelOptions } from '../options/resolve.js';
import type { ModelSpec } from './model-spec.js';

/** The routes of an app, by path. */
export type Routes = ReadonlyMap<string, Route>;

export class AppWord {
  readonly #spec: ModelSpec;
  #options: ModelOptions;
  #routes: Routes | null = null;
  #example = '';

  constructor(spec: ModelSpec) {
    this.#spec = spec;
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
    return this.#example;
  }

  /** @throws SERVE_CONFIG if the app's options are wrong; then nothing has changed */
  hear(info: LoadedInfo): void {
    this.#options = withAppConfig(this.#spec.resolved, info.modelOptions, this.#spec.app);
    this.#example = info.example;
    this.#routes = new Map(info.routes.map((route) => [route.path, route]));
  }

  /** The code has changed: nothing that it said holds any more. */
  forget(): void {
    this.#options = this.#spec.resolved.options;
    this.#routes = null;
  }
}
