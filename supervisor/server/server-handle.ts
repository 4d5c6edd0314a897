/** The types of a running server and of `server.models`, as `serve()` returns them to programs. docs/models.md has examples. */
import type { FunctionCallOptions } from '../functions/function-types.js';
import type { ModelStatus } from '../models/model-status.js';
import type { Accepted, FullModelRef, ModelRef } from '../models/models.js';
import type { ModelSource } from '../plan/given-options.js';
import type { ServerEnd, ServerStatus } from '../status/server-status.js';
import type { CloseOptions } from './host/closing.js';

/**
 * A running server, as `serve` returns it.
 * @example
 * const server: ServerHandle = await serve({ app: './app.ts', port: 0 });
 * await server.ready;
 * console.log(server.url, server.status().model.workers.length);
 * await server.close();
 */
export interface ServerHandle {
  /** Address of the server, such as `http://localhost:8000`; `unix:/path` for a socket. */
  readonly url: string;
  /** Address of the management API; null if there is none. */
  readonly managementUrl: string | null;
  /** Address of the metrics if they have their own listener, else null. */
  readonly metricsUrl: string | null;
  /**
   * Resolves once a worker is ready; with several models, once each of the first models has a ready worker or has given up.
   * Rejects (SERVE_APP_INVALID, SERVE_INIT_FAILED, SERVE_CRASH_LOOP) if no model can start. With `watch` a model may start
   * after any change, so it then rejects only when the server ends.
   */
  readonly ready: Promise<void>;
  /** Resolves when the server has ended, for whatever reason. */
  readonly ended: Promise<ServerEnd>;
  /** The value of `--drain-lag`. */
  readonly drainLagMs: number;
  /** Adds, scales and removes models while the server runs. */
  readonly models: ModelsHandle;
  /**
   * Calls a model from this program, without HTTP, as a function of `supervise()` is called: with values as V8 copies them. Only
   * workers in Node answer. Rejects with a ServeError.
   */
  call(model: string | ModelRef, input: unknown, options?: FunctionCallOptions): Promise<unknown>;
  /** The answer to `GET /status`. */
  status(): ServerStatus;
  /** Lets models whose workers cannot start try again at once, as SIGHUP does: once what they need is back. */
  startAgain(): void;
  /** Drains and stops. Only the first call's options count. */
  close(options?: CloseOptions): Promise<ServerEnd>;
  /** Stops at once: kills workers and cuts connections. */
  kill(): void;
}

/**
 * A model to add to a running server, or one that replaces another.
 * @example
 * const source: NamedSource = { name: 'digits', version: '2', app: './digits-2.ts' };
 */
export interface NamedSource extends ModelSource {
  readonly name: string;
}

/**
 * The numbers of workers for `server.models.scale`.
 * @example
 * const options: ScaleOptions = { min: 1, max: 4 };
 */
export interface ScaleOptions {
  /** Starts workers if there are fewer. What is left out is as the options of a model that scales itself say; else the default is as many as the options say. */
  readonly min?: number;
  /** Stops workers if there are more; default: `min`. */
  readonly max?: number;
  /** Time for stopped workers to finish their calls, in ms; default: `--drain-timeout`. */
  readonly drainTimeoutMs?: number;
}

/**
 * Options of `server.models.replace`.
 * @example
 * const options: ReplaceOptions = { drainTimeoutMs: 10_000 };
 */
export interface ReplaceOptions {
  /** Time for replaced workers to finish their calls, in ms; default: `--drain-timeout`. */
  readonly drainTimeoutMs?: number;
}

/**
 * Options of `server.models.unregister`.
 * @example
 * const options: UnregisterOptions = { drainTimeoutMs: 10_000 };
 */
export interface UnregisterOptions {
  /** Time for accepted calls to finish, in ms; default: `--drain-timeout`. */
  readonly drainTimeoutMs?: number;
}

/**
 * The models of a running server. Changes of a model take effect in the order of the calls; `settled` resolves when its
 * workers have started or ended, and never rejects.
 * @example
 * async function add(models: ModelsHandle) {
 *   await models.register({ name: 'digits', app: './digits.ts' });
 *   const { settled } = models.scale({ name: 'digits' }, { min: 2 });
 *   return (await settled).result;
 * }
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
