/** Finds the model that a request names, and says in the words of Multi Model Server that there is none. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../models/model.js';
import type { ModelRef, Models } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';

/** @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for one that leaves, which the request is noted for */
export function findModel(context: Pick<RequestContext, 'model'>, models: Models, ref: ModelRef): Model {
  try {
    return models.find(ref);
  } catch (thrown) {
    context.model = models.leaving(ref);
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}

/** The log names the model that the request is about, one that leaves included, if there is one. */
export function noteModel(context: Pick<RequestContext, 'model'>, models: Models, ref: ModelRef): void {
  try {
    context.model = models.find(ref);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    context.model = models.leaving(ref);
  }
}

/** Whether there is such a model, one that is being unregistered included. */
export function isModel(models: Models, name: string): boolean {
  try {
    models.find({ name });
    return true;
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    return thrown.code !== 'SERVE_MODEL_NOT_FOUND';
  }
}

/** The same error in the words of Multi Model Server, if it says that a model or its version is not there. */
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
