/** The types of `server.models`, which programs write. docs/models.md shows them at work. */
import type { Accepted, FullModelRef, ModelRef } from '../../models/models.js';
import type { ModelSource } from '../../plan/given-options.js';
import type { ModelStatus } from '../../models/model-status.js';

export interface NamedSource extends ModelSource {
  readonly name: string;
}

export interface ScaleOptions {
  /** Fewer workers are made more. Without it, as many as the model's and the server's options say. */
  readonly min?: number;
  /** More workers are made fewer; `min` if left out. */
  readonly max?: number;
  /** How long workers that go may take to end the calls they have; `--drain-timeout` if left out. */
  readonly drainTimeoutMs?: number;
}

export interface ReplaceOptions {
  /** How long workers that go may take to end the calls they have; `--drain-timeout` if left out. */
  readonly drainTimeoutMs?: number;
}

export interface UnregisterOptions {
  /** How long calls that were taken may go on; `--drain-timeout` if left out. */
  readonly drainTimeoutMs?: number;
}

/**
 * The models of a running server. What is asked of one takes effect in the order of asking; `settled` tells when its
 * workers have come or gone, and never rejects.
 */
export interface ModelsHandle {
  /**
   * Adds a model, or a version of one; nothing is loaded before it is scaled. Waits for one of the same name and version
   * that is being unregistered. Rejects with SERVE_CONFIG, SERVE_MODEL_CONFLICT, SERVE_SHUTTING_DOWN.
   */
  register(model: NamedSource): Promise<ModelStatus>;
  /**
   * Replaces app and options of the model of this name and version as a whole, while it serves: options that need no new
   * worker (queue, timeouts, batches) hold at once, else workers are replaced one by one, and no call is lost. If the new
   * ones cannot start, `settled` is `failed` with their error, and what was before goes on. `workers` and devices count
   * for what is scaled later. Rejects with SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND.
   */
  replace(model: NamedSource, options?: ReplaceOptions): Promise<Accepted>;
  /**
   * Sets how many workers the model shall have. One that is asked for before this has settled overtakes it: both settle
   * together, with the numbers of the later one, since those are the workers there are then; `wanted` tells it.
   * @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  scale(ref: ModelRef, options?: ScaleOptions): Accepted;
  /**
   * New calls do not find it any more; those that were taken are ended first.
   * @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_MODEL_CONFLICT for the default one of several versions
   */
  unregister(ref: ModelRef, options?: UnregisterOptions): Accepted;
  /**
   * Calls that name no version get this one from now on.
   * @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  setDefault(ref: FullModelRef): void;
  /**
   * All of them, all versions of a name, or one.
   * @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  describe(ref?: ModelRef): readonly ModelStatus[];
}
