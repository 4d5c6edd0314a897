/** Answers a request with an error, in the shape that its dialect gives. */
import type { ServeError } from '../../../protocol/errors.js';
import { refuse } from '../socket/refuse.js';
import type { RequestContext } from '../request/request-context.js';

export interface ErrorFacts {
  /** Value of the Server-Timing header; absent if the request was no call. */
  readonly timing?: string;
  /** The methods that the path takes, if the request had none of them. */
  readonly allow?: string;
  /** Whether nothing more is heard on this connection. */
  readonly close?: boolean;
}

/** The Server-Timing of a call that was refused before it had a place. */
export const NO_TIME = 'queue;dur=0, run;dur=0';

/** Sends the error; also when the body is still arriving, or when a part of the answer is out already. Returns its status. */
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
  // What is still to come from a client that was too slow would come as slowly.
  const closes = facts.close === true || error.code === 'SERVE_REQUEST_TIMEOUT' || backend.closing(request);
  refuse(request, response, failure, headers, closes);
  return failure.status;
}

/** The same for a request that gets no further than this: it is logged, and counted if it is a call. */
export function refuseRequest(context: RequestContext, error: ServeError, facts: ErrorFacts): void {
  const status = answerError(context, error, facts);
  context.backend.observer.refused(context, error, status);
}
