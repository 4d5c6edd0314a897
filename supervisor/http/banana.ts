/** The Banana dialect: `POST /` and whatever routes the app has; the body's format follows its content type. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import { ServeError } from '../../protocol/errors.js';
import type { Front } from './front.js';
import { refuse } from './refuse.js';
import { requestIdOf } from './request-id.js';
import { pathOf, submitCall } from './submit-call.js';

/**
 * Takes every POST to a route of the app; before the routes are known, every POST (it is checked when they are).
 * Returns false for everything else. Below Koa, not in it: a Koa context costs a call 8 us of 40.
 */
export function takeBananaCall(front: Front, request: IncomingMessage, response: ServerResponse): boolean {
  if (request.method !== 'POST') return false;
  const route = pathOf(request.url);
  if (front.model.routes?.has(route) === false) return false;
  submitCall(front, request, response, { route, format: 'auto' });
  return true;
}

/** What no dialect took: a known path with another method, or no such path. */
export function bananaLeftovers(front: Front, builtinPaths: ReadonlySet<string>): Middleware {
  return (ctx) => {
    ctx.respond = false;
    const isRoute = front.model.routes?.has(ctx.path) ?? ctx.path === '/';
    const allow = isRoute ? 'POST' : builtinPaths.has(ctx.path) ? 'GET, HEAD' : undefined;
    const error =
      allow === undefined
        ? new ServeError('SERVE_NOT_FOUND', `There is no ${ctx.method} ${ctx.path} here.`)
        : new ServeError('SERVE_METHOD_NOT_ALLOWED', `${ctx.path} takes ${allow}, not ${ctx.method}.`);
    const requestId = requestIdOf(ctx.req.headers);
    const headers = { requestId, close: front.closing(), timing: 'queue;dur=0, run;dur=0' };
    refuse(ctx.req, ctx.res, error, allow === undefined ? headers : { ...headers, allow });
    front.onRefused(ctx.req, requestId, error);
  };
}
