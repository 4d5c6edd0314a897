/**
 * Everything that the HTTP side knows of the server behind it. `server/build-backend.ts` builds it and hands it to every
 * dialect.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import type { Job } from '../../dispatch/job.js';
import type { KeptJobs } from '../../jobs/kept-jobs.js';
import type { Model } from '../../models/model.js';
import type { Models } from '../../models/models.js';
import type { Log } from '../../observe/log.js';
import type { Webhooks } from '../../webhooks/webhooks.js';
import type { ServerOptions } from '../../options/resolve.js';
import type { UnsentAnswers } from '../socket/unsent-answers.js';
import type { ApiKeys } from '../access/api-keys.js';
import type { ClientHeaderNames } from '../access/client-headers.js';
import type { UnroutedBodies } from '../../dispatch/unrouted-bodies.js';
import type { ManagementAccess } from '../access/management-access.js';
import type { ModelManagement } from './model-management.js';

/** What the server counts and logs of a request. */
export interface CountedRequest {
  readonly request: IncomingMessage;
  readonly requestId: string;
  /** The headers in which its client may have named the call. */
  readonly headerNames: ClientHeaderNames;
  /** Whether it is a call, as the operation says that it was claimed for. */
  readonly counts: boolean;
  /** The dialect that has claimed it, else the one that answers what nobody claims. */
  readonly dialect: { readonly name: string };
  /** The model that it asks for; null if that is not known. */
  readonly model: Model | null;
}

/** A request that is answered without a call. */
export interface LoggedRequest extends CountedRequest {
  readonly path: string;
  /** On the monotonic clock. */
  readonly acceptedAtMs: number;
  /** Whether the access log has it like a call. */
  readonly isLogged: boolean;
}

/** Is told what becomes of requests. */
export interface RequestObserver {
  /** A call has come to its end. `status` is what the client was sent, if it did not leave before. */
  settled(asked: CountedRequest, job: Job, status: number, error: ServeError | null): void;
  /** The request got no further than this, and was answered with `status`; it was a call if it `counts`. */
  refused(asked: CountedRequest, error: ServeError, status: number): void;
  /** A request was answered that is no call, a page or a probe; `error`: what it was told. */
  answered(asked: LoggedRequest, status: number, error: ServeError | null): void;
  /** What came was no request, and was answered with `status`. */
  broken(status: number): void;
  /** An answer was cut off that is no call's: a gateway's reply, a kept job, an error. */
  cut(request: IncomingMessage, requestId: string, error: ServeError): void;
}

/** Whether calls should come, in a word, and what a probe is told. */
export interface ReadinessAnswer {
  readonly ready: boolean;
  readonly state: string;
  readonly body: object;
}

export interface Backend {
  readonly models: Models;
  /** Adds, changes and removes models, for those who manage them over HTTP. */
  readonly modelManagement: ModelManagement;
  readonly options: ServerOptions;
  readonly log: Log;
  /** Asked before anything is read; a call whose body may hold the key is asked again once that is read. */
  readonly keys: ApiKeys;
  /** Who may manage models. */
  readonly management: ManagementAccess;
  /** There is no app but a store: what no dialect claims is answered as Multi Model Server answers. */
  readonly isMmsMode: boolean;
  readonly hasGpu: boolean;
  readonly jobs: KeptJobs;
  readonly webhooks: Webhooks;
  /** Is called with the outcome of every request: counts, access log and metrics hang on it. */
  readonly observer: RequestObserver;
  readonly unsent: UnsentAnswers;
  /** Number of POSTs so far, for Potassium's `sequence_number`. */
  readonly posts: { count: number };
  /** Number of answers to calls so far, by `ok` or error code. */
  readonly replies: ReadonlyMap<string, number>;
  /** Where bodies arrive that do not say yet whose they are. */
  readonly unroutedBodies: UnroutedBodies;
  /** Whether the server takes no more calls, because it is going. */
  stopping(): boolean;
  /** Whether the reply to this request ends its connection: the server is going, and nothing was pipelined behind it. */
  closing(request: IncomingMessage): boolean;
  /** Answers `Expect: 100-continue` once the call has a place. */
  inviteBody(request: IncomingMessage, response: ServerResponse): void;
  status(): object;
  /** Of the server, or of one model, strictly. @throws SERVE_MODEL_NOT_FOUND */
  readiness(model?: string): ReadinessAnswer;
}
