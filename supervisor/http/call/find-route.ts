/**
 * Finds the route of a call and checks that the request's headers and then its body are what the route takes; reads from the
 * headers how long the client waits for its answer.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { joinPieces } from '../../../protocol/wire/body-assembler.js';
import { ServeError } from '../../../protocol/errors.js';
import type { Routes } from '../../models/generations.js';
import type { Body } from '../socket/body-memory.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan, RoutedCall, Target, ChooseRoute } from './call-plan.js';
import { wishedJob } from './wished-job.js';
import { scanTopLevelFields } from '../json/top-level-fields.js';
import type { Route } from '../../../protocol/wire/messages.js';
import { rootOrOnlyRoute } from '../../models/main-route.js';

/** The client's own time limit in ms from now; null without one. @throws SERVE_BAD_REQUEST if it is not a duration */
export function timeLimitOf(headers: IncomingHttpHeaders): number | null {
  const header = headers['x-request-timeout-seconds'];
  if (header === undefined) return null;
  const seconds = Number(header);
  if (header !== '' && seconds > 0 && seconds <= MAX_LIMIT_S) return seconds * 1000;
  throw new ServeError(
    'SERVE_BAD_REQUEST',
    `X-Request-Timeout-Seconds must be a number of seconds above 0 and up to ${MAX_LIMIT_S}.`,
  );
}

const MAX_LIMIT_S = 86_400;

/**
 * Finds the route of a call among those of its model's app, and refuses a call that cannot be answered in time. A route of
 * the app that the plan calls its own takes precedence: its dialect becomes the context's.
 * @throws SERVE_NOT_FOUND, SERVE_UPGRADE_REQUIRED, SERVE_BAD_REQUEST, SERVE_OVERLOADED
 */
export function routeCall(
  context: RequestContext,
  claimed: CallPlan,
  { model, route: wanted }: Target,
  routes: Routes,
  limitMs: number | null,
): RoutedCall {
  const { request, acceptedAtMs } = context;
  const { headers } = request;
  const { own } = claimed;
  const isOwn = own?.plan.target.model === model && routes.has(own.plan.target.route);
  if (isOwn) context.dialect = own.style;
  const plan = isOwn ? own.plan : claimed;
  const path = isOwn ? own.plan.target.route : wanted;
  const route = routes.get(typeof path === 'string' ? path : path(routes));
  if (route === undefined) throw plan.noRoute ?? new ServeError('SERVE_NOT_FOUND');
  if (route.kind === 'websocket') throw new ServeError('SERVE_UPGRADE_REQUIRED');
  const takesAnyType = plan.open !== undefined || plan.format !== 'auto' || route.input === 'any';
  // Potassium answers 400, not 415, and a Banana client hides a 415 and its body.
  if (!takesAnyType && !isJson(headers['content-type']))
    throw new ServeError(
      'SERVE_BAD_REQUEST',
      'This route takes JSON: send Content-Type: application/json. The app can accept other bodies by setting `raw`, `forms` or `text`.',
    );
  if (route.kind === 'background' || plan.open !== undefined || preference(headers, 'respond-async') !== null)
    return { plan, model, route, deadlineMs: null, job: wishedJob(headers) }; // its client is answered at once
  if (limitMs !== null) model.dispatcher.checkDeadline(acceptedAtMs + limitMs);
  return { plan, model, route, deadlineMs: limitMs, job: null };
}

/**
 * The value of one of the client's preferences, empty if it has none; null if the client does not have this one. With
 * `respond-async`, it asks for an answer before the call has run (RFC 7240 section 4.1).
 */
export function preference({ prefer }: IncomingHttpHeaders, name: string): string | null {
  for (const one of typeof prefer === 'string' ? prefer.split(',') : []) {
    const [key = '', value = ''] = (one.split(';', 1)[0] as string).split('=');
    if (key.trim().toLowerCase() === name) return value.trim();
  }
  return null;
}

/** Scanning a body of this size takes 3 ms (bench/top-level-fields.ts). */
const MAX_SCANNED_BYTES = 1024 * 1024;

/**
 * Checks the body of a JSON route: not empty, and valid JSON if the call is a job. A body in a format that the dialect fixes
 * is left to the worker. @throws SERVE_BAD_BODY
 */
export function checkBody(
  { job, plan, route }: Pick<RoutedCall, 'job' | 'plan' | 'route'>,
  { pieces, bytes }: Body,
): void {
  if (route.input === 'any' || plan.format !== 'auto') return;
  if (bytes === 0) throw new ServeError('SERVE_BAD_BODY', 'This route takes JSON, and the body is empty.');
  // The client of a job is answered before a worker reads the body, so only the front can refuse it. A large body is left to
  // the worker, which fails the job: scanning it here would delay other clients.
  if (job === null || bytes > MAX_SCANNED_BYTES) return;
  const { is, at } = scanTopLevelFields(joinPieces(pieces), []);
  if (is === 'malformed')
    throw new ServeError(
      'SERVE_BAD_BODY',
      `The body is not valid JSON: it ends early or has an error at byte ${at}.`,
    );
}

/** Whether a content type is JSON: `application/json`, or `application/` with the suffix `+json`. */
export function isJson(contentType = ''): boolean {
  return (
    contentType === 'application/json' ||
    /^application\/(?:[\w.!#$&^-]+\+)?json\s*(?:;|$)/i.test(contentType.trim())
  );
}

/**
 * Chooses the route of a call that names only the model, and waits for the answer. `model`: its name. The chooser throws
 * SERVE_BAD_REQUEST if no route is meant, or one that no client could wait for.
 */
export function chooseRoute(model: string): ChooseRoute {
  const own = (path: string): string => `/models/${model}${path}`;
  return (routes) => {
    const path = rootOrOnlyRoute((paths) => notOne(model, paths, [...routes.values()], own))(routes);
    if (routes.get(path)?.kind !== 'background') return path;
    throw refusal(
      `The route ${path} of the model ${model} runs in the background: call it by POST ${own(path)}, whose answer names the page of the result.`,
    );
  };
}

function notOne(
  model: string,
  paths: readonly string[],
  all: readonly Route[],
  own: (path: string) => string,
): ServeError {
  if (paths.length > 0)
    return refusal(
      `The model ${model} has no route /, and several others; call one of them: ${paths.map((path) => `POST ${own(path)}`).join(', ')}.`,
    );
  const sockets = all.filter(({ kind }) => kind === 'websocket').map(({ path }) => own(path));
  const hint = sockets.length === 0 ? '' : ` Open a WebSocket at ${sockets.join(', ')}.`;
  return refusal(`The model ${model} has no route that takes a call.${hint}`);
}

function refusal(message: string): ServeError {
  return new ServeError('SERVE_BAD_REQUEST', message);
}
