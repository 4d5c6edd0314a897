/** Tells the paths of Multi Model Server from others, for those who only have a path. */

const PAGES: ReadonlySet<string> = new Set(['/ping', '/api-description', '/invocations']);

const CALLS = /^\/(?:predictions\/([^/]+)(?:\/.*)?|models\/([^/]+)\/invoke|([^/]+)\/predict)\/?$/;

/** The model that the path names; empty if it is one that names none, null if it is no such path. */
export function calledModel(path: string): string | null {
  if (PAGES.has(path)) return '';
  const [, ...names] = CALLS.exec(path) ?? [];
  return names.find((name) => name !== undefined) ?? null;
}
