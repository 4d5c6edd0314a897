/** The server as request handlers and dialects see it. `server/server.ts` builds it. */
import type { IncomingMessage } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import type { Call } from '../../dispatch/call.js';
import type { KeptJobs } from '../../jobs/kept-jobs.js';
import type { Model } from '../../models/model.js';
import type { ServedState } from '../../models/model-status.js';
import type { ModelRef, Models } from '../../models/models.js';
import type { Log } from '../../observe/log.js';
import type { Webhooks } from '../../webhooks/webhooks.js';
import type { ServerOptions } from '../../options/resolve.js';
import type { UnsentAnswers } from '../socket/unsent-answers.js';
import type { ApiKeys } from '../access/api-keys.js';
import type { ClientHeaderNames } from '../access/client-headers.js';
import type { UnroutedBodies } from '../../dispatch/arrivals.js';
import type { ManagementAccess } from '../access/management-access.js';
import type { ModelManagement, ModelRecord, StoredModels } from './model-management.js';
import type { ServedPage } from './served-page.js';

/** The fields of a request that are counted and logged. A job that outlived its request has them too. */
export interface CountedRequest {
  readonly request: Pick<IncomingMessage, 'headers' | 'method' | 'url'>;
  /** Address of the client, or `unix`. */
  readonly client: string;
  readonly requestId: string;
  /** Names of the headers in which a client may send an id or a key. */
  readonly headerNames: ClientHeaderNames;
  /** Whether the request is a call; its operation decides that. */
  readonly counts: boolean;
  /** Whether it came with a valid key; false on a server without keys. */
  readonly hasKey: boolean;
  /** The dialect that has claimed the request, else the default dialect. */
  readonly dialect: { readonly name: string };
  /** The model that is called; null if it is not known. */
  readonly model: Model | null;
}

/** A request with the fields that are logged if it is answered without a call. */
export interface LoggedRequest extends CountedRequest {
  readonly path: string;
  /** On the monotonic clock. */
  readonly acceptedAtMs: number;
  /** Whether every client may ask for it, keys or not: a page about the health of the server. */
  readonly isProbe: boolean;
  /** Whether the access log has a line for it although it is not a call. */
  readonly isLogged: boolean;
}

/** Receives the outcome of every request, to count and to log it. */
export interface RequestObserver {
  /** A call has ended. `status` was sent to the client, unless it disconnected before. */
  settled(request: CountedRequest, call: Call, status: number, error: ServeError | null): void;
  /** The request was refused with `status` before it was submitted; it is a call if it `counts`. */
  refused(request: CountedRequest, error: ServeError, status: number): void;
  /** A request that is not a call, such as a page or a probe, was answered; `error` if it failed. */
  answered(request: LoggedRequest, status: number, error: ServeError | null): void;
  /** Input that is not an HTTP request was answered with `status`. */
  broken(status: number): void;
  /** An answer that does not belong to a running call was cut off: a gateway's reply, a job's result, an error. */
  cut(request: IncomingMessage, requestId: string, error: ServeError): void;
}

/** The readiness of the server or of a model; `body` is the answer to a probe. */
export interface ReadinessAnswer {
  readonly ready: boolean;
  readonly state: ServedState;
  readonly body: object;
}

/** A number of calls, and their time together. */
export interface CountedTime {
  readonly count: number;
  readonly seconds: number;
}

/** Counts of the ended calls of one model, of all dialects. */
export interface CallFigures {
  /** From the arrival of a call until its answer was sent; a call that was refused at once has no time. */
  readonly ok: CountedTime;
  readonly failed: CountedTime;
  /** From the arrival until the call began, or ended without running. */
  readonly queued: CountedTime;
  readonly run: CountedTime;
  /** Number of batches whose calls have all ended, by their size. */
  readonly batches: readonly (readonly [size: number, count: number])[];
}

/** The page of `GET /metrics`. */
export interface MetricsPage {
  /** `names`: the metrics that are wanted; all if empty. */
  scrape(names: readonly string[]): Promise<{ readonly contentType: string; readonly text: string }>;
}

export interface Backend {
  readonly models: Models;
  /** Starts, changes and removes models over HTTP. */
  readonly modelManagement: ModelManagement;
  readonly storedModels: StoredModels;
  /**
   * Describes every version of every model; the ones that are being unregistered come last. Without `showsWords`, the apps'
   * words are left out.
   */
  describeModels(showsWords: boolean): readonly ModelRecord[];
  readonly options: ServerOptions;
  readonly log: Log;
  /** Keys for calls. Checked before a body is read, and again afterwards if the body may contain the key. */
  readonly keys: ApiKeys;
  /** The keys and the address that allow managing models. */
  readonly management: ManagementAccess;
  /** A model store is served without an app: unclaimed requests are answered as by Multi Model Server. */
  readonly isMmsMode: boolean;
  /** Null: there is no page. */
  readonly page: ServedPage | null;
  readonly hasGpu: boolean;
  readonly jobs: KeptJobs;
  readonly webhooks: Webhooks;
  /** Called with the outcome of every request; passes it to counts, access log and metrics. */
  readonly observer: RequestObserver;
  readonly unsent: UnsentAnswers;
  /** Number of POSTs so far, for Potassium's `sequence_number`. */
  readonly posts: { count: number };
  /** Number of answers to calls so far, by `ok` or error code. */
  readonly replies: ReadonlyMap<string, number>;
  /** The counts of a model's calls: since the start with metrics, else since they were first asked for. */
  callsOf(model: Model): CallFigures;
  /** Bodies that arrive before their model is known. */
  readonly unroutedBodies: UnroutedBodies;
  /** Whether the server refuses new calls because it is stopping. */
  stopping(): boolean;
  /** Whether the reply to this request closes its connection: the server is stopping and no request is pipelined after it. */
  closing(request: IncomingMessage): boolean;
  /** The answer to `GET /status`; without `showsWords`, the apps' words in it are empty. */
  status(showsWords: boolean): object;
  /**
   * Readiness of the server, or of one model: it needs a ready worker.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for a model that is being unregistered
   */
  readiness(ref?: ModelRef): ReadinessAnswer;
}
