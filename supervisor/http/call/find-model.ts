/** Finds the model that a request names, and notes it for the log. */
import { ServeError } from '../../../protocol/errors.js';
import type { Model } from '../../models/model.js';
import type { ModelRef, Models } from '../../models/models.js';
import type { RequestContext } from '../request/request-context.js';

/**
 * Finds a model. One that is being unregistered becomes the context's model, for the log. @throws
 * SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for a model that is being unregistered
 */
export function findModel(context: Pick<RequestContext, 'model'>, models: Models, ref: ModelRef): Model {
  try {
    return models.find(ref);
  } catch (thrown) {
    context.model = models.leaving(ref);
    throw thrown;
  }
}

/** Sets the context's model for the log, if there is one; a model that is being unregistered counts. */
export function noteModel(context: Pick<RequestContext, 'model'>, models: Models, ref: ModelRef): void {
  try {
    context.model = findModel(context, models, ref);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
  }
}
