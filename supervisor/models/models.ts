/** The models of a server: by name and version, and which of them answers a call that names none. */
import type { ModelRuntime } from './model-runtime.js';

export interface ModelRef {
  readonly name: string;
  /** The model's default version if left out. */
  readonly version?: string;
}

export class Models {
  readonly #models = new Map<string, ModelRuntime>();
  #default: ModelRuntime | null = null;

  /** The model that answers on `/`; null if there is none. */
  get default(): ModelRuntime | null {
    return this.#default;
  }

  all(): Iterable<ModelRuntime> {
    return this.#models.values();
  }

  find({ name }: ModelRef): ModelRuntime | null {
    return this.#models.get(name) ?? null;
  }

  add(model: ModelRuntime): void {
    this.#models.set(model.spec.name, model);
    this.#default ??= model;
  }
}
