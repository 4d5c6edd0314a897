/** Errors in the form of the Open Inference Protocol, with the house's statuses. */
import { ServeError } from '../../../../protocol/errors.js';
import type { ModelRef } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';
import { exposedDetail, headersOfStatus, statusOf } from '../../answer/house-error.js';
import type { Failure } from '../dialect.js';

export function openInferenceFailure(error: ServeError, context: RequestContext | null): Failure {
  const detail = exposedDetail(error, context);
  const text = detail === '' ? textOf(error) : `${error.message}\n${detail}`;
  return {
    status: statusOf(error),
    headers: { 'Content-Type': 'application/json', ...headersOfStatus(error) },
    body: Buffer.from(JSON.stringify({ error: text })),
  };
}

/** The message with the wrong values of the input, for which the protocol has no field. */
function textOf({ message, issues }: ServeError): string {
  if (issues.length === 0) return message;
  const places = issues.map(({ path, message: problem }) => `${path.join('.')}: ${problem}`);
  return `${message} ${places.join('; ')}`;
}

/** Returns the error with Triton's words, which clients look for, if a model or its version was not found. */
export function notFound(error: ServeError, { name, version = '' }: ModelRef): ServeError {
  switch (error.code) {
    case 'SERVE_MODEL_NOT_FOUND':
      return new ServeError(error.code, `Request for unknown model: '${name}' is not found`);
    case 'SERVE_VERSION_NOT_FOUND':
      return new ServeError(
        error.code,
        `Request for unknown model: '${name}' version ${version} is not found`,
      );
    default:
      return error;
  }
}
