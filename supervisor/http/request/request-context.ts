/** One request with everything that the code which answers it shares, and the server as that code sees it. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import type { Admission, UnroutedBodies } from '../../dispatch/arrivals.js';
import type { Model } from '../../models/model.js';
import type { ServerOptions } from '../../options/resolve.js';
import { bodyLimits, receiveBody } from '../socket/receive-body.js';
import type { Failure } from '../socket/refuse.js';
import { requestIdOf } from '../socket/request-facts.js';
import type { Call } from '../../dispatch/call.js';
import type { KeptJobs } from '../../jobs/kept-jobs.js';
import type { ServedState } from '../../models/model-status.js';
import type { ModelRef, Models } from '../../models/models.js';
import type { Log } from '../../observe/log.js';
import type { Webhooks } from '../../webhooks/webhooks.js';
import { nameAnswer, type UnsentAnswers } from '../socket/unsent-answers.js';
import type { ApiKeys } from '../access/api-keys.js';
import type { ClientHeaderNames } from '../access/client-headers.js';
import type { ManagementAccess } from '../access/management-access.js';
import type { ModelManagement, ModelRecord, StoredModels } from './model-management.js';
import type { ServedPage } from './served-page.js';

/** The server's listener that received a request. */
export type Listener = 'main' | 'management' | 'metrics';

export interface RequestContext extends CountedRequest {
  readonly backend: Backend;
  readonly listener: Listener;
  readonly request: IncomingMessage;
  /** For a WebSocket request, not attached to the connection; used only if the request is refused. */
  readonly response: ServerResponse;
  /** The decoded path (`namedPath`); as the client wrote it if it cannot be decoded. */
  readonly path: string;
  /** Whether the request is a WebSocket handshake. */
  readonly isWebSocket: boolean;
  /** On the monotonic clock. */
  readonly acceptedAtMs: number;
  /** From the headers; a dialect whose clients send it in the body sets it once the body is read. */
  requestId: string;
  /** Read at once, because a connection that is gone has none. */
  readonly client: string;
  /** The dialect that has claimed the request; before that, the listener's default. */
  dialect: AnswerStyle;
  counts: boolean;
  hasKey: boolean;
  /** Whether every client may ask for it, keys or not: a page about the health of the server. */
  isProbe: boolean;
  /** Whether the access log has a line for it although it is not a call. */
  isLogged: boolean;
  model: Model | null;
}

/** Changes the request id: from the headers, else `inBody`, else a new one. */
export function nameRequest(context: RequestContext, inBody: string | null): void {
  context.requestId = requestIdOf(context.request.headers, context.headerNames.callIds, inBody);
  nameAnswer(context.response, context.requestId);
}

const MAX_SMALL_BYTES = 64 * 1024;

/** Returns the size limit of a body of parameters, such as that of a request which manages models. */
export function maxSmallBody({ maxBody }: Pick<ServerOptions, 'maxBody'>): number {
  return Math.min(maxBody, MAX_SMALL_BYTES);
}

/** Reads such a body; it takes no place in a queue. Rejects as `receiveBody` does. */
export async function readSmallBody({ backend, request }: RequestContext): Promise<Buffer> {
  const limits = bodyLimits(request, maxSmallBody(backend.options), backend.options.bodyTimeout);
  const { pieces } = await receiveBody(request, limits, NO_PLACE); // too small for slabs, so there is nothing to release
  return Buffer.concat(pieces);
}

/** Returns the value of JSON in UTF-8, without a byte order mark; undefined for anything else. */
export function parseJson(body: Buffer): unknown {
  try {
    return isUtf8(body) ? JSON.parse(body.toString().replace(/^\uFEFF/, '')) : undefined;
  } catch {
    return undefined;
  }
}

const NO_PLACE: Admission = { begin: () => {}, grow: () => {}, complete: () => {}, release: () => {} };

/** The formats of a dialect's answers: the part of a dialect that is used after a request is claimed. */
export interface AnswerStyle {
  readonly name: string;
  /** Converts an error to this dialect's form. `context` is null for a request that the HTTP parser has refused. */
  fail(error: ServeError, requestId: string, context: RequestContext | null): Failure;
  /** Headers of every answer to a request that this dialect has claimed. */
  headers?(context: RequestContext): Readonly<Record<string, string>>;
  /** Names of those headers, in lower case, that an app may not set; its values for them are dropped. */
  readonly ownHeaders?: ReadonlySet<string>;
  /** The answer to a background call, if the contract with its clients fixes it; by default it names the job. */
  readonly startedBody?: string;
  /** Whether an answer with this status, the app's or the dialect's own, closes its connection; for errors, `fail` decides. */
  closes?(status: number): boolean;
}

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

/** Receives the outcome of every request, to count and to log it. */
export interface RequestObserver {
  /** A call has ended. `status` was sent to the client, unless it disconnected before. */
  settled(request: CountedRequest, call: Call, status: number, error: ServeError | null): void;
  /** The request was refused with `status` before it was submitted; it is a call if it `counts`. */
  refused(request: CountedRequest, error: ServeError, status: number): void;
  /** A request that is not a call, such as a page or a probe, was answered; `error` if it failed. */
  answered(request: RequestContext, status: number, error: ServeError | null): void;
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

/**
 * Counts of the ended calls of one model, of all dialects. Seconds of `ok` and `failed` are from the arrival of a call until
 * its answer was sent, none for one that was refused at once; of `queued` until it began, or ended without running.
 */
export interface CallFigures extends Readonly<
  Record<'ok' | 'failed' | 'queued' | 'run', { readonly count: number; readonly seconds: number }>
> {
  /** Number of batches whose calls have all ended, by their size. */
  readonly batches: readonly (readonly [size: number, count: number])[];
}

/** The page of `GET /metrics`. */
export interface MetricsPage {
  /** `names`: the metrics that are wanted; all if empty. */
  scrape(names: readonly string[]): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** The server as request handlers and dialects see it. `server/server.ts` builds it. */
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
  /**
   * `isNear`: the server is stopping. It refuses new calls, and each reply closes its connection, unless another request is
   * pipelined after it (`isLastRequest`): so no request arrives on one after the server has ended.
   */
  readonly end: { readonly isNear: boolean };
  /** The answer to `GET /status`; without `showsWords`, the apps' words in it are empty. */
  status(showsWords: boolean): object;
  /**
   * Readiness of the server, or of one model: it needs a ready worker.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for a model that is being unregistered
   */
  readiness(ref?: ModelRef): ReadinessAnswer;
}
