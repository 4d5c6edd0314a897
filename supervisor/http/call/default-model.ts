/** Finds the model for a request that names none. */
import { ServeError } from '../../../protocol/errors.js';
import type { Model } from '../../models/model.js';
import type { Models } from '../../models/models.js';

/** @throws SERVE_MODEL_NOT_FOUND if no model answers on `/`; the message lists the models of the server */
export function defaultModel(models: Models): Model {
  if (models.default !== null) return models.default;
  const names = [...new Set([...models.all()].map(({ spec }) => spec.name))];
  throw new ServeError(
    'SERVE_MODEL_NOT_FOUND',
    `The request names no model, and no model answers on /; this server has ${names.join(', ')}.`,
  );
}
