/**
 * The HTTP server: Koa over node:http, with the limits that keep slow or hostile clients from hurting others.
 * The only importer of Koa.
 */
import { STATUS_CODES, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import Koa from 'koa';
import { ServeError, describeThrown, type ErrorCode } from '../../protocol/errors.js';
import type { Log } from '../observe/log.js';
import { bananaCalls, bananaLeftovers } from './banana.js';
import { BUILTIN_PATHS, builtinRoutes } from './builtin.js';
import type { Front } from './front.js';
import { httpStatus } from './http-status.js';
import { errorBody, refuse } from './refuse.js';
import { requestIdOf } from './request-id.js';

/** Above the 60 s after which common load balancers drop idle connections: they must close first. */
const KEEP_ALIVE_MS = 75_000;

/** Node looks for slow clients this often; its default of 30 s would make a 20 s limit mean up to 50 s. */
const CHECK_INTERVAL_MS = 1000;

/** Whole request, headers and body. The pause limit inside a body is shorter (read-body.ts). */
const REQUEST_MS = 30 * 60_000;

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** An HTTP server that does not listen yet. Hand it the handler of `createHandler`. */
export function createHttpServer(headerTimeoutMs: number, handler: RequestHandler): Server {
  const server = createServer({
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: headerTimeoutMs,
    requestTimeout: Math.max(REQUEST_MS, 2 * headerTimeoutMs),
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
  });
  server.on('request', handler);
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    waitingToSend.add(request);
    handler(request, response);
  });
  server.on('clientError', answerBrokenRequest);
  return server;
}

/** Requests whose client waits for `100 Continue` before it sends the body. */
const waitingToSend = new WeakSet<IncomingMessage>();

export function inviteBody(request: IncomingMessage, response: ServerResponse): void {
  if (waitingToSend.has(request)) response.writeContinue();
}

export function createHandler(front: Front, log: Log): RequestHandler {
  const app = new Koa();
  const builtins = builtinRoutes(front);
  app.use(bananaCalls(front));
  app.use(async (ctx, next) => {
    ctx.set('X-Request-Id', requestIdOf(ctx.req.headers));
    if (front.closing()) ctx.set('Connection', 'close');
    await next();
  });
  app.use(builtins.routes());
  app.use(bananaLeftovers(front, BUILTIN_PATHS));
  app.on('error', (thrown: unknown, ctx?: Koa.Context) => {
    log.error({ path: ctx?.path }, `a request handler failed: ${describeThrown(thrown).stack}`);
  });
  const handle = app.callback();
  return (request, response) => {
    handle(request, response).catch((thrown: unknown) => {
      log.error(`a request handler failed: ${describeThrown(thrown).stack}`);
      refuse(request, response, new ServeError('SERVE_INTERNAL'), { requestId: requestIdOf(request.headers) });
    });
  };
}

/** What the HTTP parser refused never became a request: the reply is written by hand. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const reply = new ServeError(brokenRequestCode(error.code));
  const status = httpStatus(reply.code);
  const requestId = requestIdOf({});
  const body = errorBody(reply, requestId);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ];
  socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
}

function brokenRequestCode(code: string | undefined): ErrorCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'SERVE_HEADERS_TOO_LARGE';
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'SERVE_REQUEST_TIMEOUT' : 'SERVE_BAD_REQUEST';
}
