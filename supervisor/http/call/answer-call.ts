/**
 * One call over HTTP, from its plan to the dispatcher, top to bottom and the same for every app and dialect:
 *
 * 1. admit: takes a place in the model's queue, or refuses, before the body is read.
 * 2. route: finds the app's route; waits for the app if no worker has loaded it yet.
 * 3. receive: reads the body within its limits.
 * 4. submit: makes a `Call` and queues it; a worker's answer comes back through the reply sink. A call that outlives its client
 *    is stored instead: a worker pulls it, and its client is answered once it is stored.
 *
 * If the model's name or the API key is in the body, the body is received before step 1 (`answerUnrouted`).
 * Errors before the call is submitted are thrown and answered here; later ones go from the call to its sink.
 */
import { ServeError } from '../../../protocol/errors.js';
import type { Admission, Place } from '../../dispatch/arrivals.js';
import { keyOf } from '../access/api-keys.js';
import { refuseRequest } from '../answer/own-answers.js';
import { serverTiming, ReplySink } from '../answer/reply-sink.js';
import type { RequestContext } from '../request/request-context.js';
import { bodyLimits, receiveBody, type BodyLimits, codingsOf } from '../socket/receive-body.js';
import { awaitRoutes } from './await-app.js';
import type { CallPlan, Target, NamedTarget, OpenedBody, RoutedCall } from './call-plan.js';
import { TargetSearch } from './find-model.js';
import { routeCall, timeLimitOf, checkBody, isJson } from './find-route.js';
import { splitHeaderLines } from '../../../protocol/text/headers.js';
import { joinPieces } from '../../../protocol/wire/body-assembler.js';
import { Call, type CallMessage } from '../../dispatch/call.js';
import { type Webhooks, newWebhookId } from '../../webhooks/webhooks.js';
import { answerAccepted, answerStarted } from '../answer/job-answers.js';
import type { Body } from '../socket/body-memory.js';
import { onceClosed, queryOf, writtenPath } from '../socket/request-facts.js';
import { idempotencyKey, keyOfId, type WishedJob } from './wished-job.js';

/** Answers every request; rejects only because of a bug in the server. `methods`: those of the path, for `Allow`. */
export async function answerCall(context: RequestContext, plan: CallPlan, methods: string): Promise<void> {
  const { backend, request } = context;
  let place: Admission | null = null;
  try {
    const { maxBody, bodyTimeout } = backend.options;
    const limits = bodyLimits(request, maxBody, bodyTimeout);
    const limitMs = plan.open === undefined ? timeLimitOf(request.headers) : null;
    const { target } = plan;
    if (typeof target === 'function' || (plan.open !== undefined && !hasKeyInHeaders(context))) {
      const unrouted = backend.unroutedBodies.admit();
      place = unrouted;
      await answerUnrouted(context, plan, { limits, limitMs, place: unrouted });
      return;
    }
    const { model } = target;
    context.model = model;
    place = model.dispatcher.admit(limits.announcedBytes);

    const routes = model.routes ?? (await awaitRoutes(context, model, limitMs));
    let routed = routeCall(context, plan, target, routes, limitMs);

    const body = await receiveBody(request, limits, place);
    const { byBody } = routed.plan; // an app's own route has none, and no `open`
    if (byBody !== undefined) {
      const other = await byBody(body);
      if (request.socket.destroyed) throw new ServeError('SERVE_CANCELLED'); // no event would tell it any more
      if (other !== null) routed = routeCall(context, other, target, routes, null);
    }
    const { open } = routed.plan;
    const opened = open === undefined ? null : await open(context, body);

    const stored = submitCall(context, routed, body, opened, place);
    if (stored !== null) await stored;
  } catch (thrown) {
    place?.release();
    if (!(thrown instanceof ServeError)) throw thrown;
    fail(context, thrown, methods);
  }
}

/** Whether the client may call, whatever key the body has. */
function hasKeyInHeaders({ backend, request, headerNames }: RequestContext): boolean {
  return backend.keys.allows(keyOf(request.headers, headerNames.keys));
}

/**
 * Answers a call whose body contains the API key or the model's name. The body takes a place among the unrouted bodies and
 * moves to its model's queue as soon as the model is known and the client is allowed to call it. @throws the error that
 * refuses the call; the caller then releases `place`
 */
async function answerUnrouted(
  context: RequestContext,
  plan: CallPlan,
  { limits, limitMs, place }: { limits: BodyLimits; limitMs: number | null; place: Place },
): Promise<void> {
  const { backend, request } = context;
  const mayCall = plan.open === undefined || hasKeyInHeaders(context); // else the handler has checked it
  const search = new TargetSearch(plan.target);
  const joinQueue = ({ model }: Target): void => {
    if (context.model !== null) return;
    context.model = model;
    place.moveTo((bytes) => model.dispatcher.admit(Math.max(bytes, limits.announcedBytes)));
  };
  const body = await receiveBody(request, limits, place, (piece) => {
    const found = search.read(piece, mayCall);
    if (found !== null) joinQueue(found);
  });
  const opened = plan.open === undefined ? null : await plan.open(context, body);
  if (!mayCall && !backend.keys.allows(opened?.key)) throw new ServeError('SERVE_UNAUTHORIZED');
  context.hasKey = backend.keys.required;
  const target = search.end();
  joinQueue(target);

  const { model } = target;
  const routes = model.routes ?? (await awaitRoutes(context, model, limitMs));
  const routed = routeCall(context, plan, target, routes, limitMs);
  await submitCall(context, routed, body, opened, place);
}

/** Answers with an error, unless the client has left. */
function fail(context: RequestContext, error: ServeError, methods: string): void {
  if (error.code === 'SERVE_CANCELLED') return;
  const timing = serverTiming(performance.now() - context.acceptedAtMs, 0);
  const isMethod = error.code === 'SERVE_METHOD_NOT_ALLOWED';
  refuseRequest(context, error, isMethod ? { timing, allow: methods } : { timing });
}

/**
 * Submits a call whose sink answers the client. `opened`: what the dialect read from the body; null if the body
 * is the input. Returns a promise only for a call that outlives its client, which is stored; it rejects with the error that
 * refuses the call. @throws SERVE_BAD_BODY
 */
function submitCall(
  context: RequestContext,
  routed: RoutedCall,
  body: Body,
  opened: OpenedBody | null,
  place: Admission,
): Promise<void> | null {
  if (opened === null) checkBody(routed, body);
  if (routed.job !== null) return submitJob(context, routed, routed.job, body, opened, place);

  const { backend, request, response, acceptedAtMs } = context;
  const { plan, model, route, deadlineMs } = routed;
  const { dispatcher } = model;
  const frame = describeCall(context, plan, { model, route: route.path }, deadlineMs, body.bytes);
  const deadlineAtMs = deadlineMs === null ? null : acceptedAtMs + deadlineMs;
  const call = new Call(
    frame,
    body.pieces,
    { acceptedAtMs, deadlineAtMs },
    new ReplySink(context, dispatcher),
    body,
  );
  onceClosed(request, response, () => {
    if (!call.settled) dispatcher.giveUp(call, 'SERVE_CANCELLED', 'the client left');
  });
  dispatcher.submit(call, place);
  if (route.webhook !== '' && !call.settled) postResult(backend.webhooks, route.webhook, call);
  return null;
}

/** Posts the call's answer to the route's webhook, if it is a success in JSON. No caller waits for it. */
function postResult(webhooks: Webhooks, url: string, call: Call): void {
  call.onReply = ({ status, contentType }, pieces) => {
    if (status >= 300 || !isJson(contentType)) return;
    const body = joinPieces(pieces); // `send` copies it
    webhooks.send({ id: newWebhookId(), url, body, contentType, requestId: call.message.requestId });
  };
}

/**
 * Stores the call and answers its client. Rejects with the error that refuses the call: SERVE_NOT_KEPT, SERVE_KEY_CONFLICT,
 * SERVE_NOT_READY, SERVE_SHUTTING_DOWN.
 */
async function submitJob(
  context: RequestContext,
  routed: RoutedCall,
  wishes: WishedJob,
  body: Body,
  opened: OpenedBody | null,
  place: Admission,
): Promise<void> {
  const { plan, model, route } = routed;
  // If the body wraps the input, its dialect has described the input, and answers the client.
  const input =
    opened === null
      ? body
      : { pieces: [opened.input], bytes: opened.input.length, release: () => body.release() };
  const target = { model, route: route.path };
  const message = { ...describeCall(context, plan, target, null, input.bytes), ...opened?.described };
  const noWorker = model.health.noWorkerError;
  if (noWorker !== null) throw noWorker; // the client can still be answered with it
  const { idempotencyKey: key, ...wished } = wishes;
  const own = opened?.job;
  const { pieces } = input;
  const scoped =
    own?.isNamed === true
      ? await keyOfId(own.id, message, pieces)
      : key === null
        ? null
        : await idempotencyKey(context, key, message, pieces, opened?.key ?? null);
  const accepted = await context.backend.jobs.accept({
    ...(own === undefined ? {} : { id: own.id }),
    call: { ...message, headers: withoutSecrets(message.headers, context.headerNames.keys) },
    body: input,
    key: scoped,
    dialect: context.dialect.name,
    hasKey: context.hasKey,
    isBackground: route.kind === 'background',
    webhook: own?.webhook ?? route.webhook,
    isPinned: typeof plan.target === 'object' && plan.target.namesVersion === true,
    maxAttempts: route.attempts,
    ...wished,
  });
  place.release();
  if (opened !== null) await opened.answerKept(context, accepted);
  else if (route.kind === 'background') answerStarted(context, accepted);
  else answerAccepted(context, accepted);
}

/** Headers that prove who a client is: they are for this request only, and no store keeps them. */
const SECRETS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie']);

/** `keys`: further headers that contain a key, in lower case. */
function withoutSecrets(lines: string, keys: readonly string[]): string {
  const isOpen = ([name]: [string, string]): boolean => {
    const lower = name.toLowerCase();
    return !SECRETS.has(lower) && !keys.includes(lower);
  };
  const all = splitHeaderLines(lines);
  return all.every(isOpen) ? lines : all.filter(isOpen).flat().join('\n');
}

/** Builds the call frame's fields for a request: everything that the worker gets except the body. */
export function describeCall(
  context: RequestContext,
  { format, params, asciiJson = false, answer = 'auto', dialectParams }: CallPlan,
  { model, route }: NamedTarget,
  deadlineMs: number | null,
  bodyBytes: number,
): CallMessage {
  const { request, requestId } = context;
  const { headers, rawHeaders } = request;
  const { name, version } = model.spec;
  return {
    id: 0,
    model: name,
    version,
    client: context.client,
    statusOf: (error) => context.dialect.fail(error, requestId, context).status,
    bodyBytes,
    requestId,
    route,
    path: writtenPath(request.url),
    query: queryOf(context),
    format,
    contentType: headers['content-type'] ?? '',
    accept: headers.accept ?? '',
    deadlineMs: deadlineMs === null ? null : Date.now() + deadlineMs,
    headers: (codingsOf(request).length === 0 ? rawHeaders : withoutCoding(rawHeaders)).join('\n'),
    method: request.method ?? '',
    params: typeof params === 'string' ? params : encoded(params),
    asciiJson,
    answer,
    dialectParams: encoded(typeof dialectParams === 'function' ? dialectParams(model) : dialectParams),
  };
}

function encoded(params: Readonly<Record<string, string>> | undefined): string {
  return params === undefined ? '' : new URLSearchParams(params).toString();
}

/** Leaves out the headers that describe the encoded body, because the worker gets the body decoded. */
function withoutCoding(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, i) => !OF_CODING.has((rawHeaders[i - (i % 2)] as string).toLowerCase()));
}

const OF_CODING: ReadonlySet<string> = new Set(['content-encoding', 'content-length', 'transfer-encoding']);
