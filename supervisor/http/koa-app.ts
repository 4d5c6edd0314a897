/** What answers a request: calls go straight to their dialect, the rest through Koa. The only place that makes a Koa application. */
import Koa from 'koa';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServeError, describeThrown } from '../../protocol/errors.js';
import type { Log } from '../observe/log.js';
import { keyOf } from './api-keys.js';
import { HEALTH_PATHS, builtinRoutes } from './builtin.js';
import { countPost, leftovers, takeCall } from './calls.js';
import type { Front } from './front.js';
import { gatewayOperation, takeGateway } from './gateway.js';
import { potassiumRoutes } from './potassium.js';
import { refuse } from './refuse.js';
import { bananaIdHeader, requestIdOf } from './request-id.js';
import type { RequestHandler } from './server.js';
import { pathOf } from './request-facts.js';

export function createHandler(front: Front, log: Log): RequestHandler {
  const app = new Koa();
  app.use(async (ctx, next) => {
    ctx.set('X-Request-Id', requestIdOf(ctx.req.headers));
    if (front.closing()) ctx.set('Connection', 'close');
    ctx.set(bananaIdHeader(ctx.req));
    try {
      await next();
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      ctx.respond = false;
      refuse(ctx.req, ctx.res, thrown, { requestId: requestIdOf(ctx.req.headers), close: front.closing() });
    }
  });
  app.use(builtinRoutes(front).routes());
  app.use(potassiumRoutes(front).routes());
  app.use(leftovers(front));
  app.on('error', (thrown: unknown, ctx?: Koa.Context) => {
    if (ctx?.req.socket.destroyed === true) return; // the client hung up: no failure of ours, and it may do so often
    log.error({ path: ctx?.path }, `a request handler failed: ${describeThrown(thrown).stack}`);
  });
  const handle = app.callback();
  return (request, response) => {
    const path = pathOf(request.url);
    countPost(front, request, path);
    if (request.headers.host === undefined && request.httpVersion === '1.1') {
      refuseWithoutHost(front, request, response);
      return;
    }
    if (
      front.keys.required &&
      !findsKeyItself(front, request, path) &&
      !front.keys.allows(keyOf(request.headers))
    ) {
      refuseStranger(front, request, response);
      return;
    }
    if (takeCall(front, request, response, path) || takeGateway(front, log, request, response, path)) return;
    handle(request, response).catch((thrown: unknown) => {
      log.error(`a request handler failed: ${describeThrown(thrown).stack}`);
      refuse(request, response, new ServeError('SERVE_INTERNAL'), {
        requestId: requestIdOf(request.headers),
      });
    });
  };
}

/** Needs no key, or may have it elsewhere than in its headers. */
function findsKeyItself(front: Front, request: IncomingMessage, path: string): boolean {
  return isHealthCheck(request, path) || gatewayOperation(front, request, path) !== null;
}

function isHealthCheck({ method }: IncomingMessage, path: string): boolean {
  return (method === 'GET' || method === 'HEAD') && HEALTH_PATHS.has(path);
}

/** Before anything is read of the body, and whatever the path: who has no key does not learn which there are. */
function refuseStranger(front: Front, request: IncomingMessage, response: ServerResponse): void {
  const error = new ServeError('SERVE_UNAUTHORIZED');
  const requestId = requestIdOf(request.headers);
  refuse(request, response, error, { requestId, close: front.closing(), timing: 'queue;dur=0, run;dur=0' });
  front.onRefused(request, requestId, error);
}

/** RFC 9112 section 3.2: a request without `Host` gets 400. */
function refuseWithoutHost(front: Front, request: IncomingMessage, response: ServerResponse): void {
  const error = new ServeError('SERVE_BAD_REQUEST', 'The request has no Host header.');
  const requestId = requestIdOf(request.headers);
  refuse(request, response, error, { requestId, close: true });
  front.onRefused(request, requestId, error);
}
