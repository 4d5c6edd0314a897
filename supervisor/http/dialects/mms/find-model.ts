/** Finds the model that a request names; errors use the messages of Multi Model Server. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../models/model.js';
import type { ModelRef, Models } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';

/**
 * Finds a model. One that is being unregistered becomes the context's model, for the log. @throws
 * SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for a model that is being unregistered
 */
export function findModel(context: Pick<RequestContext, 'model'>, models: Models, ref: ModelRef): Model {
  try {
    return models.find(ref);
  } catch (thrown) {
    context.model = models.leaving(ref);
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}

/** Sets the context's model for the log, if there is one; a model that is being unregistered counts. */
export function noteModel(context: Pick<RequestContext, 'model'>, models: Models, ref: ModelRef): void {
  try {
    context.model = models.find(ref);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    context.model = models.leaving(ref);
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
