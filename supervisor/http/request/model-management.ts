/**
 * What a management dialect asks of the server: models that come, change and go, and what is true of them now. The words
 * are the house's; a dialect has its own for them. `server/models/http-management.ts` answers.
 */
import type { ErrorCode } from '../../../protocol/errors.js';
import type { Accepted, FullModelRef, ModelRef, Outcome, WorkerBounds } from '../../models/models.js';
import type { ModelStatus } from '../../models/model-status.js';

/** Options of a model that may be given when it is registered, and changed while it serves. */
export interface ManagedOptions {
  readonly batchSize?: number;
  readonly maxBatchDelayMs?: number;
  readonly runTimeoutMs?: number;
  /** 0: no worker can start. */
  readonly initTimeoutMs?: number;
}

/** A model of the store, and what it is to be. */
export interface NewModel extends ManagedOptions {
  /** Its place in the store. */
  readonly url: string;
  /** That of its manifest, or of its file, if left out. */
  readonly name?: string;
  /** `file`, `file:function` or `file:Class`; as its manifest says, or found by rule, if left out. */
  readonly handler?: string;
  readonly runtime?: string;
  /** Whoever asks has left: a download is called off. What is found already is registered all the same. */
  readonly signal?: AbortSignal;
}

/** One process of a model, or a slot that has none at the moment. */
export interface ProcessRecord {
  /** The number of its slot. */
  readonly index: number;
  /** `loading`: it starts, or waits to be started again. `failed`: none is started here any more. */
  readonly state: 'loading' | 'ready' | 'unloading' | 'failed';
  /** Null while there is no process. */
  readonly pid: number | null;
  readonly startedAt: Date | null;
  /** Resident bytes now; 0 where that is not known. */
  readonly memoryBytes: number;
  /** `cpu`, or `gpu 0`. */
  readonly device: string;
  /** Workers of this slot that were started because one had died. */
  readonly restarts: number;
  /** How the last worker ended, or why none is started any more; empty if nothing went wrong. */
  readonly lastError: string;
}

/** One version of a model now: its status, and what management pages show besides. */
export interface ModelRecord extends ModelStatus, Required<ManagedOptions> {
  /** The `url` that it was registered with; the path of its app if it did not come from the store. */
  readonly url: string;
  readonly wantedWorkers: number;
  readonly readyWorkers: number;
  /** Calls of the last ten minutes; `rejected`: those of them that were answered with 503. */
  readonly recentCalls: { readonly requests: number; readonly rejected: number };
  readonly processes: readonly ProcessRecord[];
}

/** Changes take effect at once, in the order of the requests; `settled` says what came of one, and never rejects. */
export interface ModelManagement {
  /**
   * Adds a model of the store, which has no workers until it is scaled. Waits for one of the same name and version that is
   * being unregistered. Rejects with SERVE_MODEL_NOT_FOUND if the store has no such model, SERVE_MODEL_CONFLICT,
   * SERVE_BAD_REQUEST, SERVE_SHUTTING_DOWN, and with the errors of the store.
   */
  register(model: NewModel): Promise<FullModelRef>;
  /**
   * Starts the first workers of a model that was registered just now. If they cannot start, and nothing else was asked of
   * the model meanwhile, it is unregistered again. @throws as `scale`
   */
  start(ref: ModelRef, workers: number): Accepted;
  /**
   * Fewer workers than `min` are made more, more than `max` fewer. A worker that goes has `drainMs` to end its calls. Slots
   * that had given up start again. The outcome is `failed` if one worker cannot start, or with SERVE_MODEL_NOT_FOUND if the
   * model was unregistered meanwhile; `unfinished` if the init timeout passed first.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND, SERVE_CONFIG
   */
  scale(ref: ModelRef, bounds: WorkerBounds, drainMs: number): Accepted;
  /**
   * Changes options, which hold at once; no call is lost. Where a worker has to know them, workers are replaced one by one.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  change(ref: ModelRef, options: ManagedOptions): Accepted;
  /**
   * Refuses new and waiting calls from now on; those that have begun, and the workers, have `timeoutMs` to end. Asked again
   * meanwhile, it waits again. The outcome is `unfinished` if that time passed first, `failed` if the server ends.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_MODEL_CONFLICT for the default one of several versions
   */
  unregister(ref: ModelRef, timeoutMs: number): Accepted;
  /** @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  setDefault(ref: FullModelRef): void;
  /** Every version of every model, those that are leaving last. */
  describe(): readonly ModelRecord[];
}

/** Whether workers could not start; not if the server ends, or somebody else has unregistered the model. */
export function isStartFailure({ result, error }: Outcome): boolean {
  return result === 'failed' && (error === null || !NO_START_FAILURE.has(error.code));
}

const NO_START_FAILURE: ReadonlySet<ErrorCode> = new Set(['SERVE_SHUTTING_DOWN', 'SERVE_MODEL_NOT_FOUND']);
