/** What callers are told whose model is not there. */
import { ServeError } from '../../protocol/errors.js';
import { labelOf, type FullModelRef, type ModelRef } from '../options/model-name.js';

/** `names`: those that there are. */
export function noModel(name: string, names: readonly string[]): ServeError {
  return new ServeError(
    'SERVE_MODEL_NOT_FOUND',
    `There is no model ${quoted(name)}; this server has ${listed(names)}.`,
  );
}

/** `versions`: those that the model has. */
export function noVersion({ name, version = '' }: ModelRef, versions: readonly string[]): ServeError {
  const message = `The model ${name} has no version ${quoted(version)}; it has: ${versions.join(', ')}.`;
  return new ServeError('SERVE_VERSION_NOT_FOUND', message);
}

/** The model leaves, and takes nothing any more. */
export function unloading(ref: FullModelRef): ServeError {
  const message = `The model ${labelOf(ref)} is being unregistered.`;
  return new ServeError('SERVE_NOT_READY', message, { retryAfterS: UNLOADING_RETRY_S });
}

/** What whoever registers it again is told, once the wait for its end was too long. */
export function stillLeaving(ref: FullModelRef): ServeError {
  const message = `The model ${labelOf(ref)} is being unregistered, and its last workers have not gone yet; register it again later.`;
  return new ServeError('SERVE_MODEL_CONFLICT', message);
}

/** It may be registered again; nobody knows when. */
const UNLOADING_RETRY_S = 30;

/** The names, as many as fit into a message. */
function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const more = names.length - MOST_NAMES;
  return `${names.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const MOST_NAMES = 20;

/** A name that a client made up, cut and on one line. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 128 ? `${text.slice(0, 128)}…` : text);
}
