/**
 * What a management dialect asks of the server: models that come, change and go, and what is true of them now. The words
 * are the house's; a dialect has its own for them. `server/models/http-management.ts` answers.
 */
import type { ServeError } from '../../../protocol/errors.js';
import type { FullModelRef, ModelRef, WorkerBounds } from '../../models/models.js';

/** Options of a model that may be given when it is registered, and changed while it serves. */
export interface AdminOptions {
  readonly batchSize?: number;
  readonly maxBatchDelayMs?: number;
  readonly runTimeoutMs?: number;
  /** 0: no worker can start. */
  readonly initTimeoutMs?: number;
}

/** A model of the store, and what it is to be. */
export interface NewModel extends AdminOptions {
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

/** What has become of a wish for workers. */
export interface ScaleEnd {
  /**
   * `done`: as many workers are ready as are wanted, and no other is there. `failed`: at least one cannot start, or nothing
   * could be begun, or the model was unregistered meanwhile (SERVE_MODEL_NOT_FOUND). `unfinished`: the time that a start
   * may take is over, and neither is known yet.
   */
  readonly result: 'done' | 'failed' | 'unfinished';
  readonly wanted: number;
  readonly ready: number;
  /** Why it failed; null if it did not. */
  readonly error: ServeError | null;
}

export interface Scaling {
  readonly accepted: FullModelRef;
  /** Never rejects. */
  readonly settled: Promise<ScaleEnd>;
  /** Whether nothing else was asked of this model since, and it is registered. */
  isLastWord(): boolean;
}

/** `gone`: nothing of it is left. `timedOut`: its end goes on. `interrupted`: the server ends, and takes it along. */
export type UnregisterEnd = 'gone' | 'timedOut' | 'interrupted';

/** One process of a model, or a place of one that has none at the moment. */
export interface WorkerFacts {
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
  /** How the one before ended, or why none is started any more; empty if nothing went wrong. */
  readonly lastError: string;
}

/** What is true of one version of a model at the moment of asking. */
export interface ModelFacts extends FullModelRef, Required<AdminOptions> {
  /** As it was asked for; the path of its app if it came another way than by the store. */
  readonly url: string;
  /** What its workers run in, such as `node`. */
  readonly runtime: string;
  readonly isDefaultVersion: boolean;
  readonly isLoadedAtStartup: boolean;
  /** It was unregistered, and ends what it has. */
  readonly isLeaving: boolean;
  readonly minWorkers: number;
  readonly maxWorkers: number;
  readonly wantedWorkers: number;
  readonly readyWorkers: number;
  readonly queueSize: number;
  /** Calls that wait for a worker, those that are still arriving included. */
  readonly waitingCalls: number;
  /** Calls of the last ten minutes; `rejected`: those of them that no worker was to be had for. */
  readonly recentCalls: { readonly requests: number; readonly rejected: number };
  readonly workers: readonly WorkerFacts[];
}

export interface ModelsAdmin {
  /**
   * Adds a model of the store, which has no workers until it is scaled. Waits for one of the same name and version that is
   * being unregistered. Rejects with SERVE_MODEL_NOT_FOUND if the store has no such model, SERVE_MODEL_CONFLICT,
   * SERVE_BAD_REQUEST, SERVE_SHUTTING_DOWN, and with what the store refuses.
   */
  register(model: NewModel): Promise<FullModelRef>;
  /**
   * Fewer workers than `min` are made more, more than `max` fewer. One that goes has `drainMs` to end its calls. What had
   * given up gets a new start. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND, SERVE_CONFIG
   */
  scale(ref: ModelRef, bounds: WorkerBounds, drainMs: number): Scaling;
  /**
   * Changes options, which hold at once; no call is lost. What its workers were told is told to new ones, that come one by
   * one. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  change(ref: ModelRef, options: AdminOptions): Scaling;
  /**
   * Refuses new and waiting calls from now on; those that have begun, and the workers, have `timeoutMs` to end. Asked again
   * while that goes on, it waits again. Rejects with SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND, and with
   * SERVE_MODEL_CONFLICT for the default one of several versions.
   */
  unregister(ref: ModelRef, timeoutMs: number): Promise<UnregisterEnd>;
  /** @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  setDefault(ref: FullModelRef): void;
  /** Every version of every model, those that are leaving last. */
  describe(): readonly ModelFacts[];
}
