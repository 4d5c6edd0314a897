/** Everything that can be called: the routes of all models, as the apps describe them. */
import type { LiveDescription, LiveModel, DialectPath, LiveRoute } from '../../status/live-types.js';
import type { History } from '../live/history.js';

export interface Target {
  /** Names it while the server runs. */
  readonly id: string;
  readonly model: LiveModel;
  readonly description: LiveDescription;
  readonly route: LiveRoute;
}

/** Without the models that are being taken away. */
export function targetsOf({ models, descriptions }: History): Target[] {
  return models.flatMap((model) => {
    const description = descriptions.get(model.key);
    if (description === undefined || model.state === 'unloading') return [];
    return description.routes
      .filter(({ paths }) => paths.length > 0)
      .map((route) => ({ id: `${model.key} ${route.path}`, model, description, route }));
  });
}

/** The one that was chosen, if it is still there; else the best of the same model, else of the default one. */
export function chosenTarget(targets: readonly Target[], id: string): Target | null {
  const exact = targets.find((target) => target.id === id);
  if (exact !== undefined) return exact;
  const ofModel = targets.filter(({ model }) => id.startsWith(`${model.key} `));
  const ofDefault = targets.filter(({ model }) => model.isDefault && model.isDefaultVersion);
  const candidates = [ofModel, ofDefault, targets].find((list) => list.length > 0) ?? [];
  return candidates.find(({ route }) => route.path === '/') ?? candidates[0] ?? null;
}

/** Absolute, below the folder in which the page lies: a proxy may have put a prefix before all paths. */
export function urlOf({ path }: DialectPath, base: string): string {
  return new URL(`.${path}`, base).href;
}

/** The same for a WebSocket. */
export function socketUrlOf(path: DialectPath, base: string): string {
  return urlOf(path, base).replace(/^http/, 'ws');
}
