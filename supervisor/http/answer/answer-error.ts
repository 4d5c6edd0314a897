/** Answers a request with an error, in the format of its dialect. */
import type { ServeError } from '../../../protocol/errors.js';
import { refuse } from '../socket/refuse.js';
import type { RequestContext } from '../request/request-context.js';

export interface ErrorFacts {
  /** Value of the Server-Timing header; absent if the request is not a call. */
  readonly timing?: string;
  /** Methods that the path takes, if the request has another one. */
  readonly allow?: string;
  /** Whether the connection is closed after this answer. */
  readonly close?: boolean;
}

/** Server-Timing of a call that was refused before it had a place in the queue. */
export const NO_TIME = 'queue;dur=0, run;dur=0';

/** Sends the error and returns its status. The body may still be arriving, and part of the answer may have been sent. */
export function answerError(context: RequestContext, error: ServeError, facts: ErrorFacts = {}): number {
  const { backend, request, response, dialect, requestId } = context;
  const failure = dialect.fail(error, requestId, context);
  const headers: Record<string, string | number> = {
    ...failure.headers,
    'X-Request-Id': requestId,
    ...dialect.headers?.(context),
  };
  if (facts.timing !== undefined) headers['Server-Timing'] = facts.timing;
  if (facts.allow !== undefined) headers['Allow'] = facts.allow;
  // The rest of a request that was too slow would arrive as slowly.
  const closes = facts.close === true || error.code === 'SERVE_REQUEST_TIMEOUT' || backend.closing(request);
  refuse(request, response, failure, headers, closes);
  return failure.status;
}

/** Sends the error as the end of the request: it is logged, and counted if the request is a call. */
export function refuseRequest(context: RequestContext, error: ServeError, facts: ErrorFacts): void {
  const status = answerError(context, error, facts);
  context.backend.observer.refused(context, error, status);
}
