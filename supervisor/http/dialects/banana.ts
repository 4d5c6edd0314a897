/**
 * The house dialect, which is Banana's: `POST` to the app's routes, whatever way the app is written in (the body's format
 * follows its content type), and health and status, answered at once however busy the workers are.
 */
import type { IncomingMessage } from 'node:http';
import Router from '@koa/router';
import type { Middleware } from 'koa';
import { ServeError } from '../../../protocol/errors.js';
import { STATUS_PATH } from '../../../protocol/reserved-paths.js';
import type { Backend } from '../call/backend.js';
import { GATEWAY_PATHS } from './own-paths.js';
import { refuse } from '../socket/refuse.js';
import { namedPath, writtenPath } from '../socket/request-facts.js';
import { requestIdOf } from '../socket/request-id.js';

/**
 * Whether the app's routes have to answer: every POST to one of them; before they are known, every POST but those to the
 * server's own paths. Answered below Koa, not in it: a Koa context costs a call 8 us of 40.
 */
export function isCall(backend: Backend, { method }: IncomingMessage, path: string): boolean {
  if (method !== 'POST') return false;
  return backend.model.routes?.has(path) ?? !backend.ownPaths.has(path);
}

/**
 * Counts a POST for Potassium's `sequence_number`: whatever becomes of it, once. Not counted are one that a path of the
 * server's own does not take, and questions about calls.
 */
export function countPost(backend: Backend, { method }: IncomingMessage, path: string): void {
  if (method !== 'POST') return;
  const own = backend.model.routes?.has(path) === true ? undefined : backend.ownPaths.get(path);
  if (own === undefined || (own.includes('POST') && !isQuestion(path))) backend.posts.count += 1;
}

/** Whether a gateway's client asks about a call, which was counted when it came. */
function isQuestion(path: string): boolean {
  const operation = GATEWAY_PATHS.get(path);
  return operation !== undefined && operation.is !== 'start';
}

/** Answers what no dialect claims: a known path with another method, or no such path. */
export function answerUnclaimed(backend: Backend): Middleware {
  return (ctx) => {
    const { routes } = backend.model;
    const written = writtenPath(ctx.req.url);
    const path = namedPath(written) as string; // one that cannot be read is refused before
    const isRoute = routes?.has(path) ?? path === '/';
    const isWebSocket = routes?.get(path)?.kind === 'websocket';
    const taken = isWebSocket ? 'GET, OPTIONS' : 'POST, OPTIONS';
    const allow = isRoute ? taken : backend.ownPaths.get(path);
    if (isRoute && ctx.method === 'OPTIONS') {
      ctx.status = 200;
      ctx.set('Allow', allow as string);
      ctx.body = '';
      return;
    }
    ctx.respond = false;
    const error = isWebSocket
      ? new ServeError('SERVE_UPGRADE_REQUIRED')
      : mistakeOf(ctx.method, written, allow);
    const requestId = requestIdOf(ctx.req.headers);
    const headers = { requestId, close: backend.closing(ctx.req), timing: 'queue;dur=0, run;dur=0' };
    refuse(ctx.req, ctx.res, error, allow === undefined ? headers : { ...headers, allow });
    backend.onRefused(ctx.req, requestId, error);
  };
}

/** `path` is the written one, so that nothing in the error or the log can end its line. */
function mistakeOf(method: string, path: string, allow: string | undefined): ServeError {
  return allow === undefined
    ? new ServeError('SERVE_NOT_FOUND', `There is no ${method} ${path} here.`)
    : new ServeError('SERVE_METHOD_NOT_ALLOWED', `${path} takes ${allow}, not ${method}.`);
}

/** The routes of health and status. */
export function builtinRoutes(backend: Backend): Router {
  const router = new Router({ strict: true, sensitive: true }); // a path is what docs/http.md lists, to the letter

  // The Banana platform's probe: `state` and `gpu` first, any 200 means ready.
  router.get('/healthcheck', (ctx) => {
    const { health } = backend.model;
    ctx.status = health === 'ready' ? 200 : 503;
    ctx.body = { state: health === 'ready' ? 'healthy' : health, gpu: backend.hasGpu };
  });

  // The front is alive if it can answer; restarting it would not mend a model, and would lose the warm workers.
  router.get('/livez', (ctx) => {
    ctx.body = { state: 'alive' };
  });

  router.get('/readyz', (ctx) => {
    const { health } = backend.model;
    ctx.status = health === 'ready' ? 200 : 503;
    ctx.body = { state: health };
  });

  router.get(STATUS_PATH, (ctx) => {
    ctx.body = backend.status();
  });

  return router;
}
