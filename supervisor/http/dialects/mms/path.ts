/** The path of a request as Multi Model Server reads it. */
import type { Ask } from '../../call/ask.js';
import { writtenPath } from '../../socket/request-facts.js';

/**
 * The segments of the path: it is percent-decoded as a whole, so that an encoded slash splits it too, and empty segments
 * at its end count for nothing. Empty for `/`.
 */
export function segmentsOf({ path, request }: Pick<Ask, 'path' | 'request'>): string[] {
  const decoded = path.includes('%') ? decodeURIComponent(writtenPath(request.url)) : path;
  const segments = decoded.split('/');
  while (segments.at(-1) === '') segments.pop();
  return segments[0] === '' ? segments.slice(1) : segments;
}

/** The query of a request, without its question mark. */
export function queryOf({ request: { url = '' } }: Pick<Ask, 'request'>): string {
  const question = url.indexOf('?');
  return question < 0 ? '' : url.slice(question + 1);
}
