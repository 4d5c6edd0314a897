/**
 * Everything that the HTTP side knows of the server behind it. `server/server.ts` builds it and hands it to every
 * dialect.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import type { Job } from '../../dispatch/job.js';
import type { KeptJobs } from '../../jobs/kept-jobs.js';
import type { Model } from '../../models/model.js';
import type { Webhooks } from '../../webhooks/webhooks.js';
import type { ServerOptions } from '../../options/resolve.js';
import type { UnsentAnswers } from '../socket/unsent-answers.js';
import type { ApiKeys } from './api-keys.js';

export interface Backend {
  readonly model: Model;
  readonly options: ServerOptions;
  /** Asked before the dialects are; one that finds the key in the body asks by itself. */
  readonly keys: ApiKeys;
  readonly hasGpu: boolean;
  readonly jobs: KeptJobs;
  readonly webhooks: Webhooks;
  readonly unsent: UnsentAnswers;
  /** Number of POSTs so far, for Potassium's `sequence_number`. */
  readonly posts: { count: number };
  /** Number of answers to calls so far, by `ok` or error code. */
  readonly replies: ReadonlyMap<string, number>;
  /** The server's own paths, and the methods that each takes, as an `Allow` header lists them. */
  readonly ownPaths: ReadonlyMap<string, string>;
  /** Whether the server takes no more calls, because it is going. */
  stopping(): boolean;
  /** Whether the reply to this request ends its connection: the server is going, and nothing was pipelined behind it. */
  closing(request: IncomingMessage): boolean;
  /** Answers `Expect: 100-continue` once the call has a place. */
  inviteBody(request: IncomingMessage, response: ServerResponse): void;
  onSettled(request: IncomingMessage, job: Job, status: number, error: ServeError | null): void;
  onRefused(request: IncomingMessage, requestId: string, error: ServeError): void;
  status(): object;
}
