/** The types of `server.models`, the interface by which programs change models. docs/models.md has examples. */
import type { Accepted, FullModelRef, ModelRef } from '../../models/models.js';
import type { ModelSource } from '../../plan/given-options.js';
import type { ModelStatus } from '../../models/model-status.js';

export interface NamedSource extends ModelSource {
  readonly name: string;
}

export interface ScaleOptions {
  /** Starts workers if there are fewer. What is left out is as the options of a model that scales itself say; else the default is as many as the options say. */
  readonly min?: number;
  /** Stops workers if there are more; default: `min`. */
  readonly max?: number;
  /** Time for stopped workers to finish their calls, in ms; default: `--drain-timeout`. */
  readonly drainTimeoutMs?: number;
}

export interface ReplaceOptions {
  /** Time for replaced workers to finish their calls, in ms; default: `--drain-timeout`. */
  readonly drainTimeoutMs?: number;
}

export interface UnregisterOptions {
  /** Time for accepted calls to finish, in ms; default: `--drain-timeout`. */
  readonly drainTimeoutMs?: number;
}

/**
 * The models of a running server. Changes of a model take effect in the order of the calls; `settled` resolves when its
 * workers have started or ended, and never rejects.
 */
export interface ModelsHandle {
  /**
   * Adds a model, or a version of one; nothing is loaded before it is scaled, unless it scales itself. If a model of the same name and version is
   * being unregistered, waits for that first. Rejects with SERVE_CONFIG, SERVE_MODEL_CONFLICT, SERVE_SHUTTING_DOWN.
   */
  register(model: NamedSource): Promise<ModelStatus>;
  /**
   * Replaces the app and all options of the model with this name and version while it serves. Options that need no new
   * worker (queue, timeouts, batches) apply at once; else workers are replaced one by one, and no call is lost. If the new
   * workers cannot start, `settled` is `failed` with their error, and the old ones continue. `workers` and devices apply to
   * later calls of `scale`. Rejects with SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND.
   */
  replace(model: NamedSource, options?: ReplaceOptions): Promise<Accepted>;
  /**
   * Sets the number of workers of the model. A later `scale` before this one has settled takes its place: both settle
   * together with the numbers of the later one, as `wanted` shows.
   * @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  scale(ref: ModelRef, options?: ScaleOptions): Accepted;
  /**
   * Removes the model: new calls do not find it, and accepted calls finish first.
   * @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_MODEL_CONFLICT for the default one of several versions
   */
  unregister(ref: ModelRef, options?: UnregisterOptions): Accepted;
  /**
   * Makes this version the default: calls that name no version get it from now on.
   * @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  setDefault(ref: FullModelRef): void;
  /**
   * Describes all models, all versions of a name, or one version.
   * @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  describe(ref?: ModelRef): readonly ModelStatus[];
}
