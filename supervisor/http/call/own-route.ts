/** Lets a route of the app take precedence over another dialect's path, also for calls that came before the app was loaded. */
import type { Routes } from '../../models/app-description.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan, Target } from './call-plan.js';

/** A plan whose target is known. */
export interface AimedPlan {
  readonly plan: CallPlan;
  readonly target: Target;
}

/**
 * Returns the plan to follow now that the routes of the target's model are known: that of the app's own route, whose
 * dialect becomes the context's, or the given one.
 */
export function ownRouteOr(
  context: RequestContext,
  plan: CallPlan,
  target: Target,
  routes: Routes,
): AimedPlan {
  const { own } = plan;
  const named = own?.plan.target;
  if (own === undefined || typeof named !== 'object' || named.model !== target.model) return { plan, target };
  if (typeof named.route !== 'string' || !routes.has(named.route)) return { plan, target };
  context.dialect = own.style;
  return { plan: own.plan, target: named };
}
