/** How every reply on the paths of Multi Model Server looks: its headers, its errors, and which of them end their connection. */
import type { ServeError } from '../../../../protocol/errors.js';
import type { ServerOptions } from '../../../options/resolve.js';
import type { RequestContext } from '../../request/request-context.js';
import { BANANA_CLIENTS } from '../../access/banana-clients.js';
import { headersOfStatus } from '../../answer/house-error.js';
import type { Dialect, Failure } from '../dialect.js';
import { mmsError } from './failures.js';
import { JSON_TYPE, mmsJson } from './json.js';

const NO_CACHE = {
  Pragma: 'no-cache',
  'Cache-Control': 'no-cache; no-store, must-revalidate, private',
  Expires: 'Thu, 01 Jan 1970 00:00:00 UTC',
};

type MaxBody = (options: ServerOptions) => number;

/** `maxBody`: the largest body, in bytes, that its paths take. */
export function mmsStyleFor(
  maxBody: MaxBody,
): Pick<Dialect, 'fail' | 'clientHeaders' | 'headers' | 'ownHeaders' | 'closes'> {
  return {
    // A key comes in either header here too, also where no other dialect listens.
    clientHeaders: { key: BANANA_CLIENTS.clientHeaders.key },
    fail: (error, _requestId, context) => mmsFailure(error, context, maxBody),
    headers: () => NO_CACHE,
    ownHeaders: new Set(Object.keys(NO_CACHE).map((name) => name.toLowerCase())),
    closes: (status) => status >= 400,
  };
}

export const mmsStyle = mmsStyleFor(({ maxBody }) => maxBody);

function mmsFailure(error: ServeError, context: RequestContext | null, maxBody: MaxBody): Failure {
  const options = context?.backend.options;
  const body = mmsError(error, {
    model: context?.model?.spec.name ?? '',
    exceptionStatus: Number(options?.mmsExceptionStatus ?? 503),
    isExposed: options?.exposeErrors === true,
  });
  const headers = { ...NO_CACHE, 'Content-Type': JSON_TYPE, ...headersOfStatus(error) };
  const ending =
    body.code === 413 && context !== null ? { readsOnBytes: stillWorth(context, maxBody) } : { closes: true };
  return { status: body.code, headers, body: mmsJson(body), ...ending };
}

/** Of a body that is too large, as much as is twice the limit in all is read. In chunks, the limit has been read by now. */
function stillWorth({ backend, request }: RequestContext, maxBody: MaxBody): number {
  const bytes = maxBody(backend.options);
  return request.headers['content-length'] === undefined ? bytes : 2 * bytes;
}
