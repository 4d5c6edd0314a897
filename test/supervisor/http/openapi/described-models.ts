/** A registry of models as far as their descriptions need it. */
import type { LoadedInfo, Route } from '../../../../protocol/wire/messages.js';
import type { ManagedModel } from '../../../../supervisor/models/model.js';
import { Registry } from '../../../../supervisor/models/models.js';

export interface DescribedModel {
  readonly name: string;
  readonly version?: string;
  /** Null while it is loading. */
  readonly info: LoadedInfo | null;
  /** It answers on `/`. */
  readonly isDefault?: boolean;
}

export function route(path: string, more: Partial<Route> = {}): Route {
  return { path, kind: 'handler', input: 'any', webhook: '', maxBatch: 1, attempts: 1, ...more };
}

export function loaded(routes: readonly Route[], more: Partial<LoadedInfo> = {}): LoadedInfo {
  return { routes, modelOptions: {}, example: '', ...more };
}

export function describedModels(models: readonly DescribedModel[]): Registry {
  const registry = new Registry();
  for (const { name, version = '1', info, isDefault = false } of models) {
    const routes = info === null ? null : new Map(info.routes.map((one) => [one.path, one]));
    const model = { spec: { name, version }, info, routes, sizing: { bounds: null }, crew: { wanted: 1 } };
    registry.addFirst(model as unknown as ManagedModel, isDefault);
  }
  return registry;
}
