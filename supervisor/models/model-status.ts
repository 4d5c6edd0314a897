/**
 * The description of one version of a model and its workers, from which `GET /status`, `server.models`, the management APIs
 * and the page choose. Times in ms, sizes in bytes. This file has only types: the page, which is compiled for browsers, uses
 * them. `describe-model.ts` describes a model.
 */
import type { Task } from '../../protocol/wire/messages.js';
import type { ScalingChange } from './scaling-changes.js';

/**
 * One version of a model and its workers.
 * @example
 * const waiting = ({ queue, inFlight }: ModelStatus) => queue.waiting + inFlight;
 */
export interface ModelStatus {
  readonly name: string;
  readonly version: string;
  /**
   * `idle`: it has no worker because none was needed; the next call starts one. `failing`: it was ready once, and its starts
   * fail; they go on. `unloaded`: it wants no workers. `unloading`: it was unregistered, and ends its last calls.
   */
  readonly state:
    'starting' | 'ready' | 'idle' | 'unhealthy' | 'failing' | 'draining' | 'unloaded' | 'unloading';
  /** Why no worker can start, and what to do, in the server's words; null while calls are taken, or none are wanted. */
  readonly problem: string | null;
  /** Whether calls that name no version get this one. */
  readonly isDefaultVersion: boolean;
  /** Whether the server started with it. */
  readonly loadedAtStartup: boolean;
  /** The bounds of its number of workers: those within which it scales itself, else as last asked for. */
  readonly minWorkers: number;
  readonly maxWorkers: number;
  /** The rules by which the number follows the calls; null if it is fixed. */
  readonly scaling: ScalingStatus | null;
  /** Absolute path. */
  readonly app: string;
  /** The runtime: `node`, `python`, or the program that was named. */
  readonly runtime: string;
  /** The absolute path and the version of its interpreter, where one was to be chosen. */
  readonly interpreter: { readonly path: string; readonly version: string } | null;
  /** The task of the model, by which clients call it; null if the app names none, or is not loaded yet. */
  readonly task: Task | null;
  /** Null until a worker has loaded the app. */
  readonly routes: readonly string[] | null;
  readonly queue: {
    readonly waiting: number;
    /** Calls whose bodies are on their way. */
    readonly arriving: number;
    readonly bytes: number;
    readonly maxCalls: number;
    /** Bound of the bytes of all models together. */
    readonly maxBytes: number;
  };
  readonly inFlight: number;
  /** Workers beyond the wanted ones: as many as the operator wants, and those that are ready to take the place of another. */
  readonly standby: { readonly wanted: number; readonly ready: number };
  /** Time of a run, of a call by itself or of a batch; null until one has ended. */
  readonly runMs: { readonly mean: number | null; readonly slow: number | null };
  readonly workers: readonly WorkerStatus[];
}

/**
 * The rules and the latest changes of a model that scales itself.
 * @example
 * const missing = (scaling: ScalingStatus, running: number) => scaling.wantedWorkers - running;
 */
export interface ScalingStatus {
  readonly wantedWorkers: number;
  readonly idleTimeoutMs: number;
  readonly targetWaitMs: number;
  /** Expected time from the start of a process until its worker is ready. */
  readonly startMs: number;
  /** The last twenty workers that came and went, with the rule and the figures that decided; the latest is the last. */
  readonly changes: readonly ScalingChange[];
}

/**
 * `busy`, `idle` or `frozen` (by SIGSTOP) once it is ready; else a state of docs/lifecycle.md, of the worker or of its slot.
 * @example
 * const isReady = (state: WorkerStateName) => state === 'idle' || state === 'busy';
 */
export type WorkerStateName =
  | 'busy'
  | 'idle'
  | 'frozen'
  | 'spawning'
  | 'loading'
  | 'initializing'
  | 'warming'
  | 'finishing'
  | 'stopping'
  | 'killing'
  | 'gone'
  | 'waiting'
  | 'live'
  | 'renewing'
  | 'replacing'
  | 'backoff'
  | 'latched'
  | 'closing'
  | 'closed';

/**
 * One worker of a model.
 * @example
 * const describe = ({ index, state, device }: WorkerStatus) => `${index}: ${state} on ${device}`;
 */
export interface WorkerStatus {
  readonly index: number;
  readonly state: WorkerStateName;
  /** Whether it is beyond the wanted ones, and takes no calls while those are ready. */
  readonly standby: boolean;
  /** Null while there is no process. */
  readonly pid: number | null;
  /** `cpu`, or `gpu 0`. */
  readonly device: string;
  readonly uptimeMs: number | null;
  readonly initMs: number | null;
  /** Calls it has finished, those of its forerunners included. */
  readonly calls: number;
  /** Calls it holds now. */
  readonly held: number;
  readonly restarts: number;
  /** State of the worker that is to take its place; null if none is on its way. */
  readonly next: WorkerStateName | null;
  readonly retryInMs: number | null;
  /** The reason why its next start waits, in words that follow "waiting for"; null if none waits. */
  readonly waitsFor: string | null;
  readonly lastExit: WorkerExit | null;
}

/**
 * The end of a worker.
 * @example
 * const describe = ({ how, why, during }: WorkerExit) => `${how} during ${during} ${why}`;
 */
export interface WorkerExit {
  /** Such as `signal SIGKILL` or `killed by the server: run timeout`. */
  readonly how: string;
  /** The reason that the worker gave itself, which are the app's words, or a guess; may be empty. */
  readonly why: string;
  readonly code: number | null;
  readonly signal: string | null;
  /** ISO 8601. */
  readonly at: string;
  readonly during: 'start' | 'idle' | 'call';
  readonly requestId: string | null;
  readonly uptimeMs: number;
}

/** The state of a registered model; `unloaded`: no workers are wanted. */
export type ServedState = Exclude<ModelStatus['state'], 'unloading'>;
