/** The error for a file or folder that is not a model that can be served. */
import { ServeError } from '../../protocol/errors.js';

/** `url`: url of the query. `what`: the problem and its remedy. */
export function archiveInvalid(url: string, what: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_ARCHIVE_INVALID', `${url}: ${what}`, { cause });
}
