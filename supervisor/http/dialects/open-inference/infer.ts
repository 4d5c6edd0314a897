/** Plans a call: the route that a call of the model means, and the format in which the worker reads and writes it. */
import type { Model } from '../../../models/model.js';
import { chooseRoute } from '../../call/choose-route.js';
import type { CallPath, CalledRoute } from '../../request/call-paths.js';
import type { CallPlan } from '../dialect.js';

/** The format of both workers, by the name of its file. */
const FORMAT = 'open-inference';

/** `namesVersion`: the request names the version of the model. */
export function inferPlan(model: Model, namesVersion: boolean): CallPlan {
  const { name, version } = model.spec;
  const target = { model, route: chooseRoute(name), namesVersion };
  return { target, format: FORMAT, answer: FORMAT, dialectParams: { model: name, version } };
}

/** Calls take tensors, not the app's own input. */
export function callPaths({
  model: { name, version },
  route,
  isDefaultVersion,
  isMain,
}: CalledRoute): CallPath[] {
  if (!isMain || route.kind !== 'handler') return [];
  const versioned = { path: `/v2/models/${name}/versions/${version}/infer` };
  return isDefaultVersion ? [{ path: `/v2/models/${name}/infer` }, versioned] : [versioned];
}
