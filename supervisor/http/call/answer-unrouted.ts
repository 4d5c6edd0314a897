/**
 * Calls whose body holds the API key or the name of the model. The body takes a place among the unrouted bodies, and
 * moves to the queue of its model as soon as the model is known and the client may call it.
 */
import { ServeError } from '../../../protocol/errors.js';
import { receiveBody, type BodyLimits } from '../socket/receive-body.js';
import { keyOf } from '../access/api-keys.js';
import type { RequestContext } from '../request/request-context.js';
import { awaitRoutes } from './await-routes.js';
import type { CallPlan, Target } from './call-plan.js';
import type { UnroutedBody } from '../../dispatch/unrouted-bodies.js';
import { routeCall } from './route-check.js';
import { submitCall } from './submit-call.js';
import { TargetSearch } from './target-search.js';

/** Whether the client may call by its headers alone. `gate.ts` has checked already, unless the body holds the key. */
export function headerKeyIsEnough(
  { backend, request, headerNames }: RequestContext,
  plan: CallPlan,
): boolean {
  return (
    plan.open === undefined ||
    !backend.keys.required ||
    backend.keys.allows(keyOf(request.headers, headerNames.keys))
  );
}

/** @throws the error that the call is refused with; the caller then releases the place */
export async function answerUnrouted(
  context: RequestContext,
  plan: CallPlan,
  { limits, limitMs, place }: { limits: BodyLimits; limitMs: number | null; place: UnroutedBody },
): Promise<void> {
  const { backend, request, response } = context;
  const mayCall = headerKeyIsEnough(context, plan);
  const search = new TargetSearch(plan.target);
  const enter = ({ model }: Target): void => {
    if (context.model !== null) return;
    context.model = model;
    place.moveTo((bytes) => model.dispatcher.admit(Math.max(bytes, limits.announcedBytes)));
  };
  backend.inviteBody(request, response);
  const body = await receiveBody(request, limits, place, (piece) => {
    if (!mayCall) {
      search.keep(piece);
      return;
    }
    const found = search.read(piece);
    if (found !== null) enter(found);
  });
  const opened = plan.open === undefined ? null : await plan.open(context, body);
  if (!mayCall && !backend.keys.allows(opened?.key)) throw new ServeError('SERVE_UNAUTHORIZED');
  const target = search.end();
  enter(target);

  const { model } = target;
  const routes = model.routes ?? (await awaitRoutes(context, model, limitMs));
  const routed = routeCall(context, plan, target, routes, limitMs);
  await submitCall(context, plan, { routed, body, opened, place });
}
