/** The model that is meant where none is named. */
import { ServeError } from '../../../protocol/errors.js';
import type { Model } from '../../models/model.js';
import type { Models } from '../../models/models.js';

/** @throws SERVE_MODEL_NOT_FOUND if the server has none, naming those that it has */
export function defaultModel(models: Models): Model {
  if (models.default !== null) return models.default;
  const names = [...new Set([...models.all()].map(({ spec }) => spec.name))];
  throw new ServeError(
    'SERVE_MODEL_NOT_FOUND',
    `No model answers where none is named; this server has ${names.join(', ')}.`,
  );
}
