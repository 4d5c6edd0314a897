/** What was found is no model that can be served. */
import { ServeError } from '../../protocol/errors.js';

/** `url`: as it was asked for. `what`: what is wrong, and what to do. */
export function archiveInvalid(url: string, what: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_ARCHIVE_INVALID', `${url}: ${what}`, { cause });
}
