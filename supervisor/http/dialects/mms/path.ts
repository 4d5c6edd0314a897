/** The path of a request as Multi Model Server reads it. */
import type { RequestContext } from '../../request/request-context.js';
import { writtenPath } from '../../socket/request-facts.js';

/**
 * The segments of the path: it is percent-decoded as a whole, so that an encoded slash splits it too, and empty segments
 * at its end count for nothing. Empty for `/`. A path that cannot be read is taken as it is written.
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

/** The query of a request, without its question mark. */
export function queryOf({ request: { url = '' } }: Pick<RequestContext, 'request'>): string {
  const question = url.indexOf('?');
  return question < 0 ? '' : url.slice(question + 1);
}
