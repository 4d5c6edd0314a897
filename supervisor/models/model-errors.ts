/** The errors of requests for a model that cannot be found or is being unregistered. */
import { ServeError } from '../../protocol/errors.js';
import { labelOf, type FullModelRef, type ModelRef } from '../options/model-name.js';

/** `names`: the models of this server. */
export function noModel(name: string, names: readonly string[]): ServeError {
  return new ServeError(
    'SERVE_MODEL_NOT_FOUND',
    `There is no model ${quoted(name)}; this server has ${listed(names)}.`,
  );
}

/** `versions`: the versions of the model. */
export function noVersion({ name, version = '' }: ModelRef, versions: readonly string[]): ServeError {
  const message = `The model ${name} has no version ${quoted(version)}; it has: ${versions.join(', ')}.`;
  return new ServeError('SERVE_VERSION_NOT_FOUND', message);
}

/** The error of calls to a model that is being unregistered. */
export function unloading(ref: FullModelRef): ServeError {
  const message = `The model ${labelOf(ref)} is being unregistered.`;
  return new ServeError('SERVE_NOT_READY', message, { retryAfterS: UNLOADING_RETRY_S });
}

/** The error of a registration whose wait for the model of the same name and version took too long. */
export function stillLeaving(ref: FullModelRef): ServeError {
  const message = `The model ${labelOf(ref)} is being unregistered and its last workers have not ended yet; register it again later.`;
  return new ServeError('SERVE_MODEL_CONFLICT', message);
}

/** The model may be registered again at an unknown time. */
const UNLOADING_RETRY_S = 30;

/** Lists as many names as fit into a message. */
function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const more = names.length - MOST_NAMES;
  return `${names.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const MOST_NAMES = 20;

/** Quotes a name that a client sent, shortened and on one line. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 128 ? `${text.slice(0, 128)}…` : text);
}
