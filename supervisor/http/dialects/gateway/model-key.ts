/**
 * Finds the model that a start calls, by `modelKey`. Banana's clients always send one, which has no meaning on a server
 * with one model: there it is ignored. With several models an unknown key is refused, and a missing key means the
 * default model.
 */
import type { Models } from '../../../models/models.js';
import type { Model } from '../../../models/model.js';
import { defaultModel, jsonField, targetNamedBy } from '../../call/find-model.js';
import type { CallPlan, Target } from '../dialect.js';

/** The only route of an app that can be called this way. */
export const GATEWAY_ROUTE = '/';

export function startTarget(models: Models): CallPlan['target'] {
  const only = onlyModel(models);
  if (only !== null) return target(only);
  return targetNamedBy(jsonField('modelKey'), (name) =>
    target(name === null ? defaultModel(models) : models.find({ name })),
  );
}

function target(model: Model): Target {
  return { model, route: GATEWAY_ROUTE };
}

/** Returns the default version of the only model; null if there are several models, or none. */
function onlyModel(models: Models): Model | null {
  const names = new Set(Array.from(models.all(), ({ spec }) => spec.name));
  const [name] = names;
  return name === undefined || names.size > 1 ? null : models.find({ name });
}
