/** The types of the answer to `GET /status`, which `server.status()` gives too. Times in ms, sizes in bytes. */
import type { ServeError } from '../../protocol/errors.js';

/** Why a server ended. */
export interface ServerEnd {
  /** `drained`: every call was answered. `cut`: the drain timeout passed first. `failed`: no worker could start. */
  readonly reason: 'drained' | 'cut' | 'failed' | 'killed';
  readonly error: ServeError | null;
}

export interface ServerStatus {
  /**
   * `ready`: a model has a ready worker, and every model that the server started with was ready or has given up.
   * `unhealthy`: no worker is ready, and one has died or cannot start, or none is wanted.
   */
  readonly state: 'starting' | 'ready' | 'unhealthy' | 'draining';
  readonly version: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly uptimeMs: number;
  /** The model that answers on `/`; without one the first of `models`; without any an empty one, its name ''. */
  readonly model: ModelStatus;
  /** Every version of every model, those that are being unregistered last. */
  readonly models: readonly ModelStatus[];
  /** Replies to calls so far, by `ok` or error code. */
  readonly replies: Readonly<Record<string, number>>;
  /** Clients that have not taken all of their answers, and the bytes that are held for them. */
  readonly unsent: { readonly clients: number; readonly bytes: number; readonly maxBytes: number };
  readonly front: {
    readonly rssBytes: number;
    readonly eventLoopDelayMs: { readonly p50: number; readonly p99: number; readonly max: number };
  };
}

export interface ModelStatus {
  readonly name: string;
  readonly version: string;
  /** `unloaded`: it wants no workers. `unloading`: it was unregistered, and ends its last calls. */
  readonly state: 'starting' | 'ready' | 'unhealthy' | 'draining' | 'unloaded' | 'unloading';
  /** The name without a version means this version. */
  readonly isDefaultVersion: boolean;
  /** The server started with it. */
  readonly loadedAtStartup: boolean;
  /** The number of workers that it was last asked to have, within these bounds. */
  readonly minWorkers: number;
  readonly maxWorkers: number;
  /** Absolute path. */
  readonly app: string;
  /** What runs it: `node`, `python`, or the program that was named. */
  readonly runtime: string;
  /** The absolute path and the version of its interpreter, where one was to be chosen. */
  readonly interpreter: { readonly path: string; readonly version: string } | null;
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
  /** Time of a run, of a call by itself or of a batch; null until one has ended. */
  readonly runMs: { readonly mean: number | null; readonly slow: number | null };
  readonly workers: readonly WorkerStatus[];
}

/** `busy` or `idle` once it is ready; else a state of docs/lifecycle.md, of the worker or of its slot. */
export type WorkerStateName =
  | 'busy'
  | 'idle'
  | 'spawning'
  | 'loading'
  | 'initializing'
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

export interface WorkerStatus {
  readonly index: number;
  readonly state: WorkerStateName;
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
  readonly lastExit: WorkerExit | null;
}

export interface WorkerExit {
  /** Such as `signal SIGKILL` or `killed by the server: run timeout`. */
  readonly how: string;
  /** The reason that the worker gave itself, or a guess; may be empty. */
  readonly why: string;
  readonly code: number | null;
  readonly signal: string | null;
  /** ISO 8601. */
  readonly at: string;
  readonly during: 'start' | 'idle' | 'call';
  readonly requestId: string | null;
  readonly uptimeMs: number;
}
