/**
 * Types of the data of the page at `/`, which `GET /_k/live` sends as server-sent events (`event: name`, `data:` one line of
 * JSON). The page is compiled for browsers, so this file has only types. Times are in ms, sizes in bytes; a time named `at` is
 * calendar time, in ms since the epoch. What `/status` has too means the same here.
 *
 * 1. `viewer`, once: facts about this viewer's connection.
 * 2. `samples`, once: everything that the server remembers, with the samples of the last ten minutes.
 * 3. `snapshot`, once a second: the present, and what happened since the snapshot before. They are numbered: a viewer that
 *    reads too slowly misses some. It may connect again, at most once a minute, to get what it has missed.
 * 4. `end`, once: the server ends, and the stream with it. A stream that ends without it was cut.
 *
 * `GET /_k/live?log` sends the log instead: `lines`, at first the last ones, then the new ones some times a second, and `end`.
 * It is for viewers only who may read the app's words.
 *
 * An empty text takes the place of the app's words (lines of stderr, messages of errors) for viewers that may not see them.
 */

import type { Route, Signature } from '../../protocol/wire/messages.js';
import type { HiddenBecause } from '../http/access/app-words.js';
import type { DialectPath } from '../http/request/call-paths.js';
import type { PageManagement } from '../http/request/served-page.js';
import type { JobRecord } from '../jobs/job-record.js';
import type { GpuUsage } from '../machine/nvidia-smi.js';
import type { ModelStatus, WorkerStatus } from '../models/model-status.js';
import type { ScalingChange } from '../models/scaling-changes.js';
import type { RecentLine } from '../observe/recent-lines.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import type { ServerEnd, ServerStatus } from './server-status.js';

export type { Signature, TensorSpec } from '../../protocol/wire/messages.js';
export type { HiddenBecause } from '../http/access/app-words.js';
export type { DialectPath } from '../http/request/call-paths.js';
export type { RecentLine as LiveLine } from '../observe/recent-lines.js';

/** The data of each event, by its name. */
export interface LiveEvents {
  readonly viewer: LiveViewer;
  readonly samples: LiveHistory;
  readonly snapshot: LiveSnapshot;
  readonly lines: LiveLines;
  readonly end: { readonly reason: Exclude<ServerEnd['reason'], 'killed'> };
}

export interface LiveViewer {
  /** Whether the server has API keys: then calls need one. */
  readonly needsKey: boolean;
  /** Why this viewer does not see the app's words; null if it does. */
  readonly hidden: HiddenBecause | null;
  /** `needs key`: it takes another key than the viewer's. */
  readonly management: PageManagement;
}

/** Lines of the log and of the workers' output. */
export interface LiveLines {
  /** Whether there were lines before these that the viewer did not get, because it reads too slowly. */
  readonly missed: boolean;
  readonly lines: readonly RecentLine[];
}

export interface LiveHistory {
  /** The number of the last snapshot before this event: the next one has the number after it. */
  readonly number: number;
  /** The end of the last second of the columns; they all end there, and begin at most ten minutes earlier. */
  readonly at: number;
  readonly models: readonly LiveModelHistory[];
  readonly descriptions: readonly LiveDescription[];
  /** At most the last 200, oldest first. */
  readonly calls: readonly LiveCall[];
  /** At most the last 100, oldest first. */
  readonly deaths: readonly LiveDeath[];
  /**
   * At most 100, newest first. Without ids and words for viewers who may not read the app's words: they may not read the list
   * of jobs either.
   */
  readonly jobs: readonly LiveJob[];
}

export interface LiveModelHistory {
  /** `LiveModel.key`. */
  readonly key: number;
  /** One value per second, oldest first. A model that is younger than ten minutes has fewer. The page appends to them. */
  readonly columns: Readonly<Record<keyof LiveSample, Column>>;
  /** Calls that ended with this error code, by code; as long as the columns. */
  readonly errors: Record<string, Column>;
}

export type Column = (number | null)[];

/**
 * One second of one model. Values are null for a second that was not measured, and percentiles and means also without a
 * call. Percentiles are approximate: the server counts calls in buckets.
 */
export type LiveSample = {
  /** Calls that ended, refused ones included. */
  readonly calls: number | null;
  /** Calls that ended with an error code; an app's own 4xx is `ok`. */
  readonly failed: number | null;
  /** Calls that waited for a worker, at the end of the second. */
  readonly waiting: number | null;
  /** Calls whose bodies were arriving, at the end of the second. */
  readonly arriving: number | null;
  /** Calls in workers whose clients waited, at the end of the second. */
  readonly running: number | null;
  readonly queueP50Ms: number | null;
  readonly queueP95Ms: number | null;
  readonly queueP99Ms: number | null;
  readonly runP50Ms: number | null;
  readonly runP95Ms: number | null;
  readonly runP99Ms: number | null;
  /** Mean number of calls that began together. */
  readonly batchSize: number | null;
  /** Workers that were ready, at the end of the second. */
  readonly readyWorkers: number | null;
  /** Resident memory of the model's processes; measured only while there are viewers. */
  readonly memoryBytes: number | null;
};

export interface LiveSnapshot {
  readonly number: number;
  readonly at: number;
  readonly server: LiveServer;
  /** Every version of every model; the ones that are being unregistered come last. */
  readonly models: readonly LiveModel[];
  /** Descriptions that are new or have changed since the snapshot before; a model has none until its app is loaded. */
  readonly descriptions: readonly LiveDescription[];
  /** Calls that ended since the snapshot before, oldest first; of more than 200 the last. */
  readonly calls: readonly LiveCall[];
  /** Workers that died since the snapshot before, oldest first; of more than 100 the last. */
  readonly deaths: readonly LiveDeath[];
  /** Null if none has changed since the snapshot before. */
  readonly jobs: readonly LiveJob[] | null;
}

/** The server without its models, as in `/status`. */
export interface LiveServer extends Omit<ServerStatus, 'model' | 'models'> {
  /** The cards of this machine, as nvidia-smi reported them at most some seconds ago; a figure is null if it is unknown. */
  readonly gpus: readonly GpuUsage[];
  /** Number of viewers of the page, this one included. */
  readonly viewers: number;
}

/** A model as in `/status`, but `app` is only the name of its file or folder. */
export interface LiveModel extends Omit<ModelStatus, 'scaling' | 'workers'> {
  /** Names the model within this server's life: a model that is registered again has another key. */
  readonly key: number;
  /** Whether no worker will be started any more: every slot has given up. */
  readonly isLatched: boolean;
  /** Whether it answers at the paths of the app's routes. */
  readonly isDefault: boolean;
  readonly wantedWorkers: number;
  /** The last workers that came or went because the model scales itself, oldest first. */
  readonly changes: readonly ScalingChange[];
  /** Percentiles of the last minute, approximate; null without a call. */
  readonly minute: Pick<LiveSample, 'queueP95Ms' | 'runP95Ms'>;
  readonly batchSize: number;
  readonly initTimeoutMs: number;
  /** Number of batches since the start of the server, by the number of calls that began together, smallest first. */
  readonly batches: readonly (readonly [calls: number, batches: number])[];
  readonly workers: readonly LiveWorker[];
  /** The last second. */
  readonly sample: LiveSample;
  /** Calls of the last second that ended with an error code, by code. */
  readonly errors: Readonly<Record<string, number>>;
}

export interface LiveWorker extends Omit<WorkerStatus, 'lastExit'> {
  /**
   * Since when it is in this state; `busy`, `idle` and `frozen` count as one. Without a process, since the last death, or at
   * first since the model was registered.
   */
  readonly since: number;
  /** Resident memory of its processes; null if unknown. */
  readonly memoryBytes: number | null;
  /** Start of the process; null while there is none. */
  readonly startedAt: number | null;
  /** Age of the running call; null if none runs. */
  readonly runningMs: number | null;
  /** Request id of the running call, of a batch the first; empty if none runs. */
  readonly requestId: string;
  /** Why the slot is latched, or failing: more starts in a row have failed than allowed. Null if it is neither. */
  readonly failure: LiveError | null;
  /** `LiveDeath.id` of the last worker that died in this slot; null if none did since it last started anew. */
  readonly lastDeath: number | null;
}

interface LiveError {
  /** A code of docs/errors.md. */
  readonly code: string;
  /** The app's words. */
  readonly message: string;
}

/** A worker that died without being asked to. */
export interface LiveDeath extends Pick<
  WorkerDeath,
  'pid' | 'how' | 'cause' | 'hint' | 'during' | 'uptimeMs'
> {
  /** Counts up. */
  readonly id: number;
  readonly at: number;
  /** `LiveModel.key`. */
  readonly key: number;
  readonly model: string;
  readonly version: string;
  /** `LiveWorker.index`. */
  readonly worker: number;
  /** Request id of the call that it ran, of a batch the first; empty if it ran none. */
  readonly requestId: string;
  /** Calls that it had finished. */
  readonly calls: number;
  /** The reason that the worker gave itself: the app's words. Empty if it gave none. */
  readonly why: string;
  /** Its last lines of stderr, at most 20, cut to 200 characters each: the app's words. */
  readonly stderr: readonly string[];
}

export interface LiveCall {
  /** Counts up. */
  readonly id: number;
  /** When it ended. */
  readonly at: number;
  /** Empty for a call without an existing model. */
  readonly model: string;
  readonly version: string;
  /** The app's route; empty for a call that was refused before it was known. */
  readonly route: string;
  readonly method: string;
  /** As the client wrote it, without the query, cut to 200 characters. */
  readonly path: string;
  /** Null if the client left before it was answered. */
  readonly status: number | null;
  /** `ok`, or an error code. */
  readonly code: string;
  readonly queueMs: number;
  readonly runMs: number;
  /** Size of the body. */
  readonly inBytes: number;
  /** Size of the answer of the app; 0 if it gave none. */
  readonly outBytes: number;
  /** `LiveWorker.index` of the worker that ran it; null if it never began. */
  readonly worker: number | null;
  readonly requestId: string;
  /** Why it failed or was refused; null if it did not. */
  readonly error: LiveFailure | null;
}

export interface LiveFailure {
  /** As the client got it. */
  readonly message: string;
  /** The app's words: type, message and stack of what it threw, of a long one beginning and end. Empty if there is none. */
  readonly detail: string;
}

/** A call that outlives its client. `GET _k/jobs/{id}` has its result. */
export interface LiveJob extends Pick<
  JobRecord,
  'id' | 'requestId' | 'model' | 'version' | 'route' | 'state' | 'createdAt' | 'progress'
> {
  readonly endedAt: number | null;
  /** The run time of its last attempt. */
  readonly runMs: number;
  readonly error: LiveError | null;
}

/** The description that an app gives of itself. */
export interface LiveDescription {
  /** `LiveModel.key`. */
  readonly key: number;
  readonly routes: readonly LiveRoute[];
  /** JSON text of an input of the route `/`, else of the first route; empty if the app has none. */
  readonly example: string;
  /** Null if the app does not describe its inputs and outputs as tensors. */
  readonly signature: Signature | null;
}

export interface LiveRoute extends Pick<Route, 'path' | 'kind' | 'input'> {
  /** The JSON Schema of its input, as text; empty if it has none, or one that is too large for a form. */
  readonly schema: string;
  /** All paths at which it can be called, percent-encoded, the best first; each begins with a slash. */
  readonly paths: readonly DialectPath[];
}
