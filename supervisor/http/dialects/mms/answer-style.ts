/**
 * The form of every reply on the paths of Multi Model Server: its headers, its errors, and whether it ends its
 * connection.
 */
import type { ServeError } from '../../../../protocol/errors.js';
import type { ServerOptions } from '../../../options/resolve.js';
import type { RequestContext } from '../../request/request-context.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import { exposedDetail, headersOfStatus } from '../../answer/house-error.js';
import type { Dialect, Failure } from '../dialect.js';
import { ERROR_BODY } from './describe.js';
import { mmsError } from './failures.js';
import { JSON_TYPE, mmsJson } from './json.js';

const NO_CACHE = {
  Pragma: 'no-cache',
  'Cache-Control': 'no-cache; no-store, must-revalidate, private',
  Expires: 'Thu, 01 Jan 1970 00:00:00 UTC',
};

type MaxBody = (options: ServerOptions) => number;

/** `maxBody`: the largest body, in bytes, that these paths accept. */
export function mmsStyleFor(
  maxBody: MaxBody,
): Pick<Dialect, 'fail' | 'clientHeaders' | 'headers' | 'ownHeaders' | 'closes'> &
  Required<Pick<Dialect, 'errorBody'>> {
  return {
    // Keys are accepted in both headers here too, also on a listener without other dialects.
    clientHeaders: { key: BANANA_CLIENTS.clientHeaders.key },
    errorBody: ERROR_BODY,
    fail: (error, _requestId, context) => mmsFailure(error, context, maxBody),
    headers: () => NO_CACHE,
    ownHeaders: new Set(Object.keys(NO_CACHE).map((name) => name.toLowerCase())),
    closes: (status) => status >= 400,
  };
}

export const mmsStyle = mmsStyleFor(({ maxBody }) => maxBody);

function mmsFailure(error: ServeError, context: RequestContext | null, maxBody: MaxBody): Failure {
  const body = mmsError(error, {
    model: context?.model?.spec.name ?? '',
    exceptionStatus: exceptionStatusOf(context),
    exposed: exposedDetail(error, context),
  });
  const headers = { ...NO_CACHE, 'Content-Type': JSON_TYPE, ...headersOfStatus(error) };
  const ending =
    body.code === 413 && context !== null
      ? { readsOnBytes: bytesToRead(context, maxBody) }
      : { closes: true };
  return { status: body.code, headers, body: mmsJson(body), ...ending };
}

/** 503 is what that server answers for an exception of a handler. Clients repeat such calls, and a model has no handler. */
function exceptionStatusOf(context: RequestContext | null): number {
  if (context?.model?.spec.program.hasCode === false) return 500;
  return Number(context?.backend.options.mmsExceptionStatus ?? 503);
}

/**
 * Bytes of a too large body that are read so that the connection can be kept: twice the limit in all. Of a chunked
 * body, the limit has been read already.
 */
function bytesToRead({ backend, request }: RequestContext, maxBody: MaxBody): number {
  const bytes = maxBody(backend.options);
  return request.headers['content-length'] === undefined ? bytes : 2 * bytes;
}
