/** Finds the model and the route of a call that names only a model, or not even that. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../models/model.js';
import type { Models } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';
import { formField, targetNamedBy } from '../../call/find-model.js';
import { rootOrOnlyRoute } from '../../call/find-route.js';
import type { CallPlan, Target } from '../dialect.js';
import { findNamed } from './find-model.js';
import { queryOf } from './path.js';

/**
 * Returns the route that a call of this model means. @throws SERVE_NOT_FOUND if the app is loaded and no route is meant
 */
export function targetOf(model: Model): Target {
  return { model, route: model.routes === null ? chooseRoute : chooseRoute(model.routes) };
}

/** @throws SERVE_NOT_FOUND, naming the routes */
const chooseRoute = rootOrOnlyRoute((paths) => {
  const others =
    paths.length === 0
      ? ' and no other route that takes POST.'
      : `; call one of ${paths.join(', ')} at /models/{model_name}{route}.`;
  return new ServeError('SERVE_NOT_FOUND', `The app of this model has no route /${others}`);
});

const FIELD = 'model_name';

/**
 * Finds the model that the query names, else the one in the beginning of a form, else the only model of the start.
 * @throws SERVE_MODEL_NOT_FOUND, and SERVE_BAD_REQUEST if there is more than one
 */
export function invocationTarget(context: RequestContext, models: Models): CallPlan['target'] {
  const named = (name: string | null): Target =>
    targetOf(name === null || name === '' ? onlyModel(models) : findNamed(context, models, { name }));
  const inQuery = new URLSearchParams(queryOf(context)).get(FIELD) ?? '';
  const find = formField(context.request.headers['content-type'] ?? '', FIELD);
  return inQuery !== '' || find === null ? named(inQuery) : targetNamedBy(find, named);
}

function onlyModel(models: Models): Model {
  const names = new Set<string>();
  for (const { model, isFirst, isLeaving } of models.describe())
    if (isFirst && !isLeaving) names.add(model.spec.name);
  const [name] = names;
  if (name !== undefined && names.size === 1) return models.find({ name });
  throw new ServeError('SERVE_BAD_REQUEST', `Parameter ${FIELD} is required.`);
}
