/** The models of a server: by name and version, and which of them answers a call that names none. */
import { ServeError } from '../../protocol/errors.js';
import type { Model } from './model.js';

export interface ModelRef {
  readonly name: string;
  /** The model's default version if left out. */
  readonly version?: string;
}

export class Models {
  readonly #models = new Map<string, Model>();
  #default: Model | null = null;

  /** The model that answers on `/`; null if there is none. */
  get default(): Model | null {
    return this.#default;
  }

  all(): Iterable<Model> {
    return this.#models.values();
  }

  /** @throws SERVE_MODEL_NOT_FOUND */
  find({ name }: ModelRef): Model {
    const model = this.#models.get(name);
    if (model !== undefined) return model;
    const known = [...this.#models.keys()].join(', ');
    throw new ServeError(
      'SERVE_MODEL_NOT_FOUND',
      `There is no model ${JSON.stringify(name)}; this server has ${known}.`,
    );
  }

  add(model: Model): void {
    this.#models.set(model.spec.name, model);
    this.#default ??= model;
  }
}
