/** Finds the model that a request names; errors use the messages of Multi Model Server. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../models/model.js';
import type { ModelRef, Models } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';
import { findModel } from '../../call/find-model.js';

/**
 * Finds a model, and notes it for the log if it is being unregistered. @throws SERVE_MODEL_NOT_FOUND,
 * SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for a model that is being unregistered
 */
export function findNamed(context: RequestContext, models: Models, ref: ModelRef): Model {
  try {
    return findModel(context, models, ref);
  } catch (thrown) {
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}

/** Whether there is such a model; one that is being unregistered counts. */
export function isModel(models: Models, name: string): boolean {
  try {
    models.find({ name });
    return true;
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    return thrown.code !== 'SERVE_MODEL_NOT_FOUND';
  }
}

/** Returns the error with Multi Model Server's message, if a model or its version was not found. */
export function notFound(error: ServeError, { name, version = '' }: ModelRef): ServeError {
  switch (error.code) {
    case 'SERVE_MODEL_NOT_FOUND':
      return new ServeError(error.code, `Model not found: ${name}`);
    case 'SERVE_VERSION_NOT_FOUND':
      return new ServeError(error.code, `Model version: ${version} does not exist for model: ${name}`);
    default:
      return error;
  }
}
