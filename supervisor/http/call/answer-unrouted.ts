/**
 * Answers calls whose body contains the API key or the model's name. The body takes a place among the unrouted bodies and
 * moves to its model's queue as soon as the model is known and the client is allowed to call it.
 */
import { ServeError } from '../../../protocol/errors.js';
import { receiveBody, type BodyLimits } from '../socket/receive-body.js';
import { keyOf } from '../access/api-keys.js';
import type { RequestContext } from '../request/request-context.js';
import { awaitRoutes } from './await-app.js';
import type { CallPlan, Target } from './call-plan.js';
import { ownRouteOr } from './own-route.js';
import type { UnroutedBody } from '../../dispatch/unrouted-bodies.js';
import { routeCall } from './route-check.js';
import { submitCall } from './submit-call.js';
import { TargetSearch } from './target-search.js';

/** Whether the headers alone allow the client to call. `gate.ts` has checked them, unless the body may contain the key. */
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

/** Answers the call as `answerCall` does. @throws the error that refuses the call; the caller then releases `place` */
export async function answerUnrouted(
  context: RequestContext,
  plan: CallPlan,
  { limits, limitMs, place }: { limits: BodyLimits; limitMs: number | null; place: UnroutedBody },
): Promise<void> {
  const { backend, request, response } = context;
  const mayCall = headerKeyIsEnough(context, plan);
  const search = new TargetSearch(plan.target);
  const joinQueue = ({ model }: Target): void => {
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
    if (found !== null) joinQueue(found);
  });
  const opened = plan.open === undefined ? null : await plan.open(context, body);
  if (!mayCall && !backend.keys.allows(opened?.key)) throw new ServeError('SERVE_UNAUTHORIZED');
  context.hasKey = backend.keys.required;
  const target = search.end();
  joinQueue(target);

  const { model } = target;
  const routes = model.routes ?? (await awaitRoutes(context, model, limitMs));
  const aimed = ownRouteOr(context, plan, target, routes);
  const routed = routeCall(context, aimed.plan, aimed.target, routes, limitMs);
  await submitCall(context, aimed.plan, { routed, body, opened, place });
}
