/** Recognizes the paths of Multi Model Server where only a path is known. */

const PAGES: ReadonlySet<string> = new Set(['/ping', '/api-description', '/invocations']);

const CALLS = /^\/(?:predictions\/([^/]+)(?:\/.*)?|models\/([^/]+)\/invoke|([^/]+)\/predict)\/?$/;

/** Returns the model that the path names; empty for a path without a model, null for any other path. */
export function calledModel(path: string): string | null {
  if (PAGES.has(path)) return '';
  const [, ...names] = CALLS.exec(path) ?? [];
  return names.find((name) => name !== undefined) ?? null;
}
