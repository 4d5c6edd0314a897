/**
 * Answers every request: calls go straight to their dialect, the rest through Koa. Only this file makes a Koa
 * application.
 */
import Koa from 'koa';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServeError, describeThrown } from '../../protocol/errors.js';
import type { Log } from '../observe/log.js';
import { Cors, answerPreflight, isPreflight } from './call/cors.js';
import { answerCall } from './call/answer-call.js';
import type { Ask } from './call/ask.js';
import { answerUnclaimed, builtinRoutes, countPost, isCall } from './dialects/banana.js';
import type { Backend } from './call/backend.js';
import { gateMistake } from './dialects/gate.js';
import { Gateway, gatewayOperation } from './dialects/gateway/gateway.js';
import { potassiumRoutes } from './dialects/potassium.js';
import { refuse } from './socket/refuse.js';
import { namedPath, pathMistake, writtenPath } from './socket/request-facts.js';
import { bananaIdHeader, requestIdOf } from './socket/request-id.js';
import type { HttpHandler } from './socket/http-server.js';
import { Upgrades } from './websocket/upgrades.js';

export function createHandler(backend: Backend, log: Log): HttpHandler {
  const app = new Koa();
  app.use(async (ctx, next) => {
    ctx.set('X-Request-Id', requestIdOf(ctx.req.headers));
    if (backend.closing(ctx.req)) ctx.set('Connection', 'close');
    ctx.set(bananaIdHeader(ctx.req));
    ctx.newRouterPath = namedPath(writtenPath(ctx.req.url)); // routers match this instead of the path as written
    try {
      await next();
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      ctx.respond = false;
      refuse(ctx.req, ctx.res, thrown, {
        requestId: requestIdOf(ctx.req.headers),
        close: backend.closing(ctx.req),
      });
    }
  });
  app.use(builtinRoutes(backend).routes());
  app.use(potassiumRoutes(backend).routes());
  app.use(answerUnclaimed(backend));
  app.on('error', (thrown: unknown, ctx?: Koa.Context) => {
    if (ctx?.req.socket.destroyed === true) return; // the client hung up: no failure of ours, and it may do so often
    log.error(
      { path: writtenPath(ctx?.req.url) },
      `a request handler failed: ${describeThrown(thrown).stack}`,
    );
  });
  const handle = app.callback();
  const { corsOrigin } = backend.options;
  const cors = corsOrigin === null ? null : new Cors(corsOrigin);
  const gateway = new Gateway(log);
  /** Rejects only for a defect of ours. */
  const answer = (ask: Ask): Promise<void> => {
    const { request, response, path } = ask;
    if (isCall(backend, request, path)) return answerCall(ask, { route: path, format: 'auto' });
    const operation = gatewayOperation(backend, request, path);
    return operation === null ? handle(request, response) : gateway.answer(ask, operation);
  };
  const request: HttpHandler['request'] = (request, response) => {
    const acceptedAtMs = performance.now();
    const written = writtenPath(request.url);
    const path = namedPath(written);
    countPost(backend, request, path ?? written);
    cors?.mark(request, response);
    if (path === null) {
      turnAway(backend, request, response, pathMistake());
      return;
    }
    const mistake = gateMistake(backend, request, path);
    if (mistake !== null) {
      turnAway(backend, request, response, mistake);
      return;
    }
    if (cors !== null && isPreflight(request)) {
      answerPreflight(request, response, backend.closing(request));
      return;
    }
    answer({ backend, request, response, path, acceptedAtMs, requestId: requestIdOf(request.headers) }).catch(
      (thrown: unknown) => {
        log.error(`a request handler failed: ${describeThrown(thrown).stack}`);
        refuse(request, response, new ServeError('SERVE_INTERNAL'), {
          requestId: requestIdOf(request.headers),
        });
      },
    );
  };
  const upgrades = new Upgrades(backend, cors);
  return { request, upgrade: (asked, socket, head) => upgrades.take(asked, socket, head) };
}

function turnAway(
  backend: Backend,
  request: IncomingMessage,
  response: ServerResponse,
  error: ServeError,
): void {
  const requestId = requestIdOf(request.headers);
  const close = error.code === 'SERVE_BAD_REQUEST' || backend.closing(request); // a client that knows no HTTP/1.1 is not heard again
  refuse(request, response, error, { requestId, close, timing: 'queue;dur=0, run;dur=0' });
  backend.onRefused(request, requestId, error);
}
