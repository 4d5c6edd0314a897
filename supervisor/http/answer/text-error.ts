/** Errors of one field, `{"error": "..."}`, as KServe's protocols have them. */
import type { ServeError } from '../../../protocol/errors.js';
import type { RequestContext } from '../request/request-context.js';
import type { Failure } from '../socket/refuse.js';
import { exposedDetail, headersOfStatus, statusOf } from './house-error.js';

/** The statuses are the house's, but for 422. */
export function textFailure(error: ServeError, context: RequestContext | null): Failure {
  const detail = exposedDetail(error, context);
  const text = detail === '' ? textOf(error) : `${error.message}\n${detail}`;
  return {
    status: error.code === 'SERVE_INPUT_INVALID' ? 400 : statusOf(error),
    headers: { 'Content-Type': 'application/json', ...headersOfStatus(error) },
    body: Buffer.from(JSON.stringify({ error: text })),
  };
}

/** The message with the wrong values of the input, for which there is no field, unless it has them already. */
function textOf({ code, message, issues }: ServeError): string {
  if (issues.length === 0 || code === 'SERVE_INPUT_INVALID') return message;
  const places = issues.map(({ path, message: problem }) => `${path.join('.')}: ${problem}`);
  return `${message} ${places.join('; ')}`;
}
