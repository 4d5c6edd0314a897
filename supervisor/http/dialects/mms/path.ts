/** Reads the path of a request as Multi Model Server does, and finds the model that it names; errors use its messages. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../models/model.js';
import type { ModelRef, Models } from '../../../models/models.js';
import { findModel } from '../../call/find-model.js';
import type { RequestContext } from '../../request/request-context.js';
import { writtenPath } from '../../socket/request-facts.js';

/**
 * Returns the segments of the path. It is percent-decoded as a whole, so that an encoded slash splits it too; empty
 * segments at its end are ignored. Empty for `/`. A path that cannot be decoded is split as written.
 */
export function segmentsOf({ path, request }: Pick<RequestContext, 'path' | 'request'>): string[] {
  const segments = (path.includes('%') ? decoded(writtenPath(request.url)) : path).split('/');
  while (segments.at(-1) === '') segments.pop();
  return segments[0] === '' ? segments.slice(1) : segments;
}

function decoded(written: string): string {
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}

const PAGES: ReadonlySet<string> = new Set(['/ping', '/api-description', '/invocations']);

const CALLS = /^\/(?:predictions\/([^/]+)(?:\/.*)?|models\/([^/]+)\/invoke|([^/]+)\/predict)\/?$/;

/** Returns the model that the path names; empty for a path without a model, null for any other path. */
export function calledModel(path: string): string | null {
  if (PAGES.has(path)) return '';
  const [, ...names] = CALLS.exec(path) ?? [];
  return names.find((name) => name !== undefined) ?? null;
}

/**
 * Finds a model, and notes it for the log if it is being unregistered. @throws SERVE_MODEL_NOT_FOUND,
 * SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for a model that is being unregistered
 */
export function findNamed(context: RequestContext, models: Models, ref: ModelRef): Model {
  return withMmsErrors(ref, () => findModel(context, models, ref));
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

/** Does something with a model; an error about an unknown one gets the message of Multi Model Server. */
export function withMmsErrors<T>(ref: ModelRef, change: () => T): T {
  try {
    return change();
  } catch (thrown) {
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}
