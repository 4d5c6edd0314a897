/**
 * The interfaces by which management dialects change models, and register and load those of the store. A dialect checks what
 * is asked in its own terms. `server/models/admin.ts` and `store-loads.ts` implement them.
 */
import type { Model } from '../../models/model.js';
import type { Accepted, FullModelRef, ModelRef, WorkerBounds } from '../../models/models.js';
import type { OptionSource } from '../../options/resolve.js';
import type { ModelStatus, WorkerStatus } from '../../models/model-status.js';

/** A model of the store and the settings to register it with. */
export interface NewModel {
  /** Path in the store, or a web address. */
  readonly url: string;
  /** Default: the name in its manifest, else that of its file. */
  readonly name?: string;
  /** `file`, `file:function` or `file:Class`; default: the one in its manifest, else a file with a usual name. */
  readonly handler?: string;
  readonly runtime?: string;
  readonly options: OptionSource;
  /** Aborts download and unpacking when the client disconnects. A model that was unpacked already is registered nevertheless. */
  readonly signal?: AbortSignal;
}

/** One process of a model, or a slot that has none at the moment. */
export interface ProcessRecord extends Pick<WorkerStatus, 'index' | 'pid' | 'device' | 'restarts'> {
  /** `loading`: it starts, waits for a restart, or is frozen by a signal. `failed`: the slot is not restarted any more. */
  readonly state: 'loading' | 'ready' | 'unloading' | 'failed';
  readonly startedAt: Date | null;
  /** Resident bytes now; 0 if unknown. */
  readonly memoryBytes: number;
  /** Describes the end of the last worker, or why the slot is not restarted; empty if nothing failed. */
  readonly lastError: string;
}

/** One version of a model now: its status and the further fields of management pages. */
export interface ModelRecord extends ModelStatus {
  readonly model: Model;
  /** Calls of the last ten minutes; `rejected` counts the ones that were answered with 503. */
  readonly recentCalls: { readonly requests: number; readonly rejected: number };
  readonly processes: readonly ProcessRecord[];
}

/** Changes take effect at once, in the order of the requests; `settled` resolves with the outcome and never rejects. */
export interface ModelManagement {
  /**
   * Completes the numbers of workers that are asked for at the registration or at a change of a model, as `models/bounds.ts`
   * says. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND, SERVE_CONFIG
   */
  boundsFor(occasion: 'registration' | 'change', ref: ModelRef, asked: Partial<WorkerBounds>): WorkerBounds;
  /**
   * Starts the first workers of a newly registered model. If they cannot start and the model was not changed in the
   * meantime, it is unregistered again. @throws as `scale`
   */
  start(ref: ModelRef, bounds: WorkerBounds): Accepted;
  /**
   * Starts workers if there are fewer than `min` and stops workers if there are more than `max`; a stopped worker has
   * `drainMs` to finish its calls. Slots that had given up start again. The outcome is `failed` if a worker cannot start, or
   * with SERVE_MODEL_NOT_FOUND if the model was unregistered in the meantime; `unfinished` if the init timeout passed first.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND, SERVE_CONFIG
   */
  scale(ref: ModelRef, bounds: WorkerBounds, drainMs: number): Accepted;
  /**
   * Replaces one worker, which finishes the calls that it has begun; see `Model.restartWorker`. The outcome is about this
   * worker. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND, SERVE_NOT_FOUND without such a worker
   */
  restartWorker(ref: ModelRef, index: number): Accepted;
  /**
   * Changes options; they apply at once. If workers need to know them, workers are replaced one by one. No call is lost.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  change(ref: ModelRef, options: OptionSource): Accepted;
  /**
   * Refuses new and waiting calls from now on; running calls and the workers have `timeoutMs` to end. A second call for the
   * same model waits as well. The outcome is `unfinished` if that time passed first, `failed` if the server ends.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_MODEL_CONFLICT for the default one of several versions
   */
  unregister(ref: ModelRef, timeoutMs: number): Accepted;
}

/** The models of the store. */
export interface StoredModels {
  /**
   * Adds a model of the store; it has no workers until it is scaled. If a model of the same name and version is being
   * unregistered, waits for that first. Rejects with SERVE_MODEL_NOT_FOUND if the store has no such model,
   * SERVE_MODEL_CONFLICT, SERVE_BAD_REQUEST, SERVE_SHUTTING_DOWN, and with the errors of the store.
   */
  register(model: NewModel): Promise<FullModelRef>;
  /** Names that `load` takes, of models of the store that are not registered. */
  list(): Promise<readonly string[]>;
  /**
   * Registers the model of the store that has this name, as it is now, and starts its workers; resolves once they are
   * ready. A version that is registered already gets new workers, one by one. A new version becomes the default and takes
   * the place of the versions of the same place in the store. If no worker can start, the versions before stay.
   * Loads of one model happen one after the other. Rejects as `register` does, and with the error of a worker that cannot
   * start, or with SERVE_INIT_TIMEOUT.
   */
  load(name: string, signal: AbortSignal): Promise<void>;
}
