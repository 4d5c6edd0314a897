/**
 * One call over HTTP, from its plan to its job, top to bottom and the same for every app and dialect:
 *
 * 1. admit: takes a place in the model's queue, or refuses, before the body is read.
 * 2. route: finds the app's route; waits for the app if no worker has loaded it yet.
 * 3. receive: reads the body within its limits.
 * 4. submit: makes a job and queues it (`submit-call.ts`).
 *
 * If the model or the API key is in the body, `answer-unrouted.ts` receives the body before step 1.
 * Errors before the job is submitted are thrown and answered here; later ones go from the job to its sink.
 */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import type { Admission } from '../../dispatch/arrivals.js';
import type { ServerOptions } from '../../options/resolve.js';
import { announcedBytes, receiveBody, type BodyLimits } from '../socket/receive-body.js';
import { refuseRequest } from '../answer/answer-error.js';
import { answerUnrouted, headerKeyIsEnough } from './answer-unrouted.js';
import type { RequestContext } from '../request/request-context.js';
import { awaitRoutes, timeLimitOf } from './await-app.js';
import type { CallPlan } from './call-plan.js';
import { ownRouteOr } from './own-route.js';
import { routeCall } from './route-check.js';
import { refusedTiming } from '../answer/server-timing.js';
import { submitCall } from './submit-call.js';

/** Answers every request; rejects only because of a bug in the server. `methods`: those of the path, for `Allow`. */
export async function answerCall(context: RequestContext, plan: CallPlan, methods: string): Promise<void> {
  const { backend, request, response } = context;
  let place: Admission | null = null;
  try {
    const limits = bodyLimits(request, backend.options);
    const limitMs = plan.open === undefined ? timeLimitOf(request) : null;
    const { target } = plan;
    if (typeof target === 'function' || !headerKeyIsEnough(context, plan)) {
      const unrouted = backend.unroutedBodies.admit();
      place = unrouted;
      await answerUnrouted(context, plan, { limits, limitMs, place: unrouted });
      return;
    }
    const { model } = target;
    context.model = model;
    place = model.dispatcher.admit(limits.announcedBytes);

    const routes = model.routes ?? (await awaitRoutes(context, model, limitMs));
    const aimed = ownRouteOr(context, plan, target, routes);
    const routed = routeCall(context, aimed.plan, aimed.target, routes, limitMs);

    backend.inviteBody(request, response);
    const body = await receiveBody(request, limits, place);
    const opened = plan.open === undefined ? null : await plan.open(context, body);

    const recorded = submitCall(context, aimed.plan, { routed, body, opened, place });
    if (recorded !== null) await recorded;
  } catch (thrown) {
    place?.release();
    if (!(thrown instanceof ServeError)) throw thrown;
    fail(context, thrown, methods);
  }
}

/** Answers with an error, unless the client has left. */
function fail(context: RequestContext, error: ServeError, methods: string): void {
  if (error.code === 'SERVE_CANCELLED') return;
  const timing = refusedTiming(performance.now() - context.acceptedAtMs);
  const isMethod = error.code === 'SERVE_METHOD_NOT_ALLOWED';
  refuseRequest(context, error, isMethod ? { timing, allow: methods } : { timing });
}

/** @throws SERVE_BODY_TOO_LARGE, SERVE_UNSUPPORTED_CODING */
function bodyLimits(request: IncomingMessage, { maxBody, bodyTimeout }: ServerOptions): BodyLimits {
  const announced = announcedBytes(request, maxBody);
  return { announcedBytes: announced, maxBodyBytes: maxBody, bodyTimeoutMs: bodyTimeout };
}
