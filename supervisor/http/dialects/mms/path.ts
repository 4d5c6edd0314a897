/** Reads the path of a request as Multi Model Server does. */
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

/** Returns the query of a request, without its question mark. */
export function queryOf({ request: { url = '' } }: Pick<RequestContext, 'request'>): string {
  const question = url.indexOf('?');
  return question < 0 ? '' : url.slice(question + 1);
}

const PAGES: ReadonlySet<string> = new Set(['/ping', '/api-description', '/invocations']);

const CALLS = /^\/(?:predictions\/([^/]+)(?:\/.*)?|models\/([^/]+)\/invoke|([^/]+)\/predict)\/?$/;

/** Returns the model that the path names; empty for a path without a model, null for any other path. */
export function calledModel(path: string): string | null {
  if (PAGES.has(path)) return '';
  const [, ...names] = CALLS.exec(path) ?? [];
  return names.find((name) => name !== undefined) ?? null;
}
