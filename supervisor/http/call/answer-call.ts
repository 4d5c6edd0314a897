/**
 * One call over HTTP, from its plan to the dispatcher, top to bottom and the same for every app and dialect:
 *
 * 1. admit: takes a place in the model's queue, or refuses, before the body is read.
 * 2. route: finds the app's route; waits for the app if no worker has loaded it yet.
 * 3. receive: reads the body within its limits.
 * 4. submit: makes a `Call` and queues it (`submit-call.ts`).
 *
 * If the model's name or the API key is in the body, the body is received before step 1 (`answerUnrouted`).
 * Errors before the call is submitted are thrown and answered here; later ones go from the call to its sink.
 */
import { ServeError } from '../../../protocol/errors.js';
import type { Admission, UnroutedBody } from '../../dispatch/arrivals.js';
import { keyOf } from '../access/api-keys.js';
import { refuseRequest, serverTiming } from '../answer/own-answers.js';
import type { RequestContext } from '../request/request-context.js';
import { bodyLimits, receiveBody, type BodyLimits } from '../socket/receive-body.js';
import { awaitRoutes } from './await-app.js';
import type { CallPlan, Target } from './call-plan.js';
import { timeLimitOf } from './client-wishes.js';
import { TargetSearch } from './find-model.js';
import { routeCall } from './find-route.js';
import { submitCall } from './submit-call.js';

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
    const routed = routeCall(context, plan, target, routes, limitMs);

    const body = await receiveBody(request, limits, place);
    const opened = plan.open === undefined ? null : await plan.open(context, body);

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
  { limits, limitMs, place }: { limits: BodyLimits; limitMs: number | null; place: UnroutedBody },
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
