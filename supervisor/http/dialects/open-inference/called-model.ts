/** Finds the model that a path names; errors use Triton's words. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../models/model.js';
import type { ModelRef } from '../../../models/models.js';
import { findModel } from '../../call/find-model.js';
import type { RequestContext } from '../../request/request-context.js';

/** The parameters of a path. */
export type PathParams = Readonly<Record<string, string>>;

export function refOf({ model = '', version }: PathParams): ModelRef {
  return version === undefined ? { name: model } : { name: model, version };
}

/** Finds the model and notes it for the log. @throws as `Models.find`, with Triton's words for an unknown model */
export function calledModel(context: RequestContext, params: PathParams): Model {
  const ref = refOf(params);
  try {
    const model = findModel(context, context.backend.models, ref);
    context.model = model;
    return model;
  } catch (thrown) {
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}

/** The versions that the path means: the one that it names, else all of the model. @throws as `calledModel` */
export function calledVersions(context: RequestContext, params: PathParams): Model[] {
  const model = calledModel(context, params);
  if (params['version'] !== undefined) return [model];
  return [...context.backend.models.all()].filter(({ spec }) => spec.name === model.spec.name);
}

/** Returns the error with Triton's words, which clients look for, if a model or its version was not found. */
export function notFound(error: ServeError, { name, version = '' }: ModelRef): ServeError {
  switch (error.code) {
    case 'SERVE_MODEL_NOT_FOUND':
      return new ServeError(error.code, `Request for unknown model: '${name}' is not found`);
    case 'SERVE_VERSION_NOT_FOUND':
      return new ServeError(
        error.code,
        `Request for unknown model: '${name}' version ${version} is not found`,
      );
    default:
      return error;
  }
}
