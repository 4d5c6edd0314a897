/** Keeps the descriptions that apps give of themselves, for the page, and notices when one has changed. */
import type { LoadedInfo } from '../../../protocol/wire/messages.js';
import type { FindCallPaths } from '../../http/request/call-paths.js';
import { mainRouteOf } from '../../http/call/find-route.js';
import type { Routes } from '../../models/generations.js';
import type { Model } from '../../models/model.js';
import type { Registered } from '../../models/models.js';
import type { LiveDescription } from '../live-types.js';
import type { ModelKeys } from './model-keys.js';

/** A registered model, and whether it answers at its app's own paths. */
export interface DescribedModel extends Registered {
  readonly isServerDefault: boolean;
}

interface Described {
  readonly info: LoadedInfo;
  readonly isServerDefault: boolean;
  readonly isDefault: boolean;
  readonly description: LiveDescription;
}

export class AppDescriptions {
  readonly #keys: ModelKeys;
  readonly #findPaths: FindCallPaths;
  #byModel = new Map<Model, Described>();

  constructor(keys: ModelKeys, findPaths: FindCallPaths) {
    this.#keys = keys;
    this.#findPaths = findPaths;
  }

  /** Every description, as of the last `update`. */
  get all(): LiveDescription[] {
    return Array.from(this.#byModel.values(), ({ description }) => description);
  }

  /** Describes these models anew where something has changed. Returns the descriptions that are new or changed. */
  update(models: readonly DescribedModel[]): LiveDescription[] {
    const before = this.#byModel;
    this.#byModel = new Map(
      models.flatMap((one) => {
        const { info, routes } = one.model;
        if (info === null || routes === null) return [];
        const known = before.get(one.model);
        const isKnown =
          known?.info === info &&
          known.isDefault === one.isDefault &&
          known.isServerDefault === one.isServerDefault;
        return [[one.model, isKnown ? known : this.#describe(one, info, routes)]];
      }),
    );
    const changed = [...this.#byModel].filter(([model, now]) => before.get(model) !== now);
    return changed.map(([, { description }]) => description);
  }

  #describe(
    { model, isDefault, isServerDefault, isLeaving }: DescribedModel,
    info: LoadedInfo,
    routes: Routes,
  ): Described {
    const main = mainRouteOf(routes);
    const { name, version } = model.spec;
    const pathsOf = (route: LoadedInfo['routes'][number]): ReturnType<FindCallPaths> =>
      this.#findPaths({
        model: { name, version },
        route,
        isDefault: isServerDefault,
        isDefaultVersion: isDefault,
        isMain: route.path === main,
      });
    const description: LiveDescription = {
      key: this.#keys.of(model),
      routes: info.routes.map((route) => {
        const { path, kind, input, maxBatch } = route;
        return { path, kind, input, maxBatch, paths: isLeaving ? [] : pathsOf(route) };
      }),
      example: info.example,
      signature: info.signature ?? null,
    };
    return { info, isDefault, isServerDefault, description };
  }
}
