/**
 * Gives each request to the dialect that claims it:
 *
 * 1. claim: the dialects are tried in order. If none claims the request, the first one with a guess gets it, else the
 *    default dialect.
 * 2. gate: checks the Host, the key unless it is in the body, and the page's origin. CORS preflights are answered here.
 * 3. act: runs the plan of a call (`call/answer-call.ts`), writes the dialect's own answer, with Koa or without, or
 *    refuses the request.
 */
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { answerCall } from './call/answer-call.js';
import { NO_TIME, answerError, answerPreflight, refuseRequest, retryHeaders } from './answer/own-answers.js';
import type { RequestContext, Listener, Backend } from './request/request-context.js';
import { clientHeaderNames, type ClientHeaderNames } from './access/client-headers.js';
import { keyOf, moveKeyProtocol } from './access/api-keys.js';
import { Cors, isPreflight, pageMistake } from './access/cors.js';
import { managementMistake, metricsMistake } from './access/management-access.js';
import { preference } from './call/find-route.js';
import { koaAnswers, type WriteAnswer } from './answer/koa-answers.js';
import type { Failure, Operation } from './dialects/dialect.js';
import { MAIN_DIALECTS, claim, type Dialects } from './dialects/index.js';
import type { HttpHandler } from './socket/http-server.js';
import { clientOf, namedPath, pathMistake, requestIdOf, writtenPath } from './socket/request-facts.js';
import { nameAnswer } from './socket/unsent-answers.js';
import { asksForWebSocket, isWebSocketPlan, refuseUpgrade, webSocketOpener } from './websocket/upgrades.js';

/** Handles the requests of one listener. */
export class FrontHandler implements HttpHandler {
  readonly #backend: Backend;
  readonly #dialects: Dialects;
  readonly #listener: Listener;
  readonly #headerNames: ClientHeaderNames;
  readonly #cors: Cors | null;
  readonly #openWebSocket: ReturnType<typeof webSocketOpener>;
  readonly #withKoa: ReturnType<typeof koaAnswers>;

  constructor(backend: Backend, dialects: Dialects = MAIN_DIALECTS, listener: Listener = 'main') {
    const { corsOrigin, maxBody } = backend.options;
    const headerNames = clientHeaderNames([...dialects.inOrder, dialects.default]);
    this.#backend = backend;
    this.#dialects = dialects;
    this.#listener = listener;
    this.#headerNames = headerNames;
    // Metrics need no key on their own listener, so pages of other origins must not read them.
    const hasCors = corsOrigin !== null && listener !== 'metrics';
    this.#cors = hasCors ? new Cors(corsOrigin, headerNames.exposed) : null;
    this.#openWebSocket = webSocketOpener(maxBody);
    this.#withKoa = koaAnswers(backend.log);
  }

  request(request: IncomingMessage, response: ServerResponse): void {
    const written = writtenPath(request.url);
    const path = namedPath(written);
    const context = this.#newContext(request, response, path ?? written, false);
    this.#cors?.mark(request, response);
    const operation = claim(context, this.#dialects, path !== null);
    this.#proceed(context, operation, path === null ? pathMistake() : hostMistake(request));
  }

  /** Answers the request, unless its operation leaves it to other dialects: then it comes here again, once. */
  #proceed(context: RequestContext, operation: Operation, mistake: ServeError | null): void {
    const { request, response } = context;
    if (operation.counts) this.#backend.posts.count += 1;
    if (mistake !== null) {
      refuseRequest(context, mistake, { timing: NO_TIME, close: true }); // its client may not know HTTP/1.1
      return;
    }
    if (this.#cors !== null && isPreflight(request)) {
      answerPreflight(context, operation.methods);
      this.#backend.observer.answered(context, response.statusCode, null);
      return;
    }
    const refusal = keyMistake(context, operation) ?? originMistake(context);
    if (refusal !== null) {
      refuseRequest(context, refusal, { timing: NO_TIME });
      return;
    }
    this.#act(context, operation)?.catch((thrown: unknown) => {
      this.#backend.log.error(`a request handler failed: ${describeThrown(thrown).stack}`);
      answerError(context, new ServeError('SERVE_INTERNAL'));
    });
  }

  /** Carries out the operation. Rejects only because of a bug in the server. */
  #act(context: RequestContext, { act, methods }: Operation): Promise<void> | void {
    if ('target' in act) return answerCall(context, act, methods);
    if ('write' in act) return this.#write(context, act.write);
    if ('answer' in act) return act.answer(context);
    if ('find' in act)
      return act.find(context).then((write) => {
        if (write !== null) return this.#write(context, write);
        const inOrder = this.#dialects.inOrder.filter((one) => one !== context.dialect);
        return this.#proceed(context, claim(context, { ...this.#dialects, inOrder }, true), null);
      });
    const { code } = act.refuse;
    const isMethod = code === 'SERVE_METHOD_NOT_ALLOWED' || code === 'SERVE_UPGRADE_REQUIRED';
    refuseRequest(context, act.refuse, isMethod ? { timing: NO_TIME, allow: methods } : { timing: NO_TIME });
  }

  async #write(context: RequestContext, write: WriteAnswer): Promise<void> {
    const error = await this.#withKoa(context, write);
    context.backend.observer.answered(context, context.response.statusCode, error);
  }

  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): boolean {
    const path = asksForWebSocket(request) ? namedPath(writtenPath(request.url)) : null;
    if (path === null) return false;
    const hasKeyProtocol = moveKeyProtocol(request, this.#headerNames.keys);
    const context = this.#newContext(request, new ServerResponse(request), path, true);
    const operation = claim(context, this.#dialects, true);
    const { act: plan } = operation;
    const isRefused = hasKeyProtocol && 'refuse' in plan; // as a plain request it would have no key
    if (!isRefused && !isWebSocketPlan(plan)) return false;
    const mistake = hostMistake(request) ?? keyMistake(context, operation) ?? originMistake(context);
    if (isWebSocketPlan(plan))
      this.#openWebSocket(context, plan, mistake ?? jobMistake(request), socket, head);
    else if (isRefused) refuseUpgrade(context, socket, mistake ?? plan.refuse);
    return true;
  }

  fail(error: ServeError, requestId: string): Failure {
    const failure = this.#dialects.default.fail(error, requestId, null);
    this.#backend.observer.broken(failure.status);
    return { ...failure, headers: { ...failure.headers, ...retryHeaders(error) } };
  }

  #newContext(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    isWebSocket: boolean,
  ): RequestContext {
    const requestId = requestIdOf(request.headers, this.#headerNames.callIds);
    nameAnswer(response, requestId);
    return {
      backend: this.#backend,
      listener: this.#listener,
      headerNames: this.#headerNames,
      request,
      response,
      path,
      isWebSocket,
      acceptedAtMs: performance.now(),
      requestId,
      client: clientOf(request),
      dialect: this.#dialects.default,
      counts: false,
      hasKey: false,
      isProbe: false,
      isLogged: false,
      model: null,
    };
  }
}

/** A WebSocket needs its client: it cannot be a job. */
function jobMistake({ headers }: IncomingMessage): ServeError | null {
  if (preference(headers, 'respond-async') === null) return null;
  return new ServeError('SERVE_BAD_REQUEST', 'A WebSocket cannot be a job: leave out Prefer: respond-async.');
}

/** A name or address of RFC 3986 section 3.2.2, optionally with a port; an empty Host is valid too. */
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;

/** SERVE_BAD_REQUEST where RFC 9112 section 3.2 requires it for the `Host` header; null otherwise. HTTP/1.0 needs no Host. */
function hostMistake({ headers: { host }, httpVersion, rawHeaders }: IncomingMessage): ServeError | null {
  let hosts = 0; // Node's `headers` has only the first one
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  let problem: string | null = null;
  if (host === undefined) problem = httpVersion === '1.1' ? 'The request has no Host header.' : null;
  else if (!HOST.test(host)) problem = 'The Host header is not a valid host name or address.';
  else if (hosts > 1) problem = 'The request has more than one Host header.';
  return problem === null ? null : new ServeError('SERVE_BAD_REQUEST', problem);
}

/**
 * SERVE_UNAUTHORIZED unless a header has a valid key or no key is needed; null then. The check comes before the body is
 * read and does not depend on the path, so that a client without a key does not learn which paths exist. For management
 * requests, and for every path on the management listener, `management-access.ts` decides.
 */
function keyMistake(context: RequestContext, { auth, act }: Operation): ServeError | null {
  const { backend, request, headerNames } = context;
  if (context.listener === 'metrics') return metricsMistake(request, backend.options);
  if (auth === 'none') return null;
  if (auth === 'management' || context.listener === 'management') {
    const mistake = managementMistake(context, backend.management, backend.options.corsOrigin);
    context.hasKey = mistake === null && backend.management.keys.required;
    return mistake;
  }
  const isInBody = auth === 'body' && !('target' in act && act.open === undefined); // a plan that reads no key needs it here
  if (isInBody || !backend.keys.required) return null;
  context.hasKey = backend.keys.allows(keyOf(request.headers, headerNames.keys));
  return context.hasKey ? null : new ServeError('SERVE_UNAUTHORIZED');
}

/**
 * SERVE_ORIGIN_REFUSED if a page of another origin calls a server without keys, or opens a WebSocket there or where the
 * operator lists pages; else null. Management has its own rule.
 */
function originMistake({
  backend,
  listener,
  request,
  counts,
  isWebSocket,
}: RequestContext): ServeError | null {
  if (listener !== 'main') return null;
  const { keys, options } = backend;
  const isChecked = isWebSocket ? !keys.required || options.corsOrigin !== null : counts && !keys.required;
  return isChecked ? pageMistake(request, options.corsOrigin) : null;
}
