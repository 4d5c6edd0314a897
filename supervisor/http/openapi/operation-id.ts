/** Makes the names of operations, by which generated clients call them. */
import type { ApiMethod } from './operation.js';

/**
 * Returns a name of letters, digits and underscores that no other operation has, in this document or a later one: a slash
 * becomes `_`, every other sign, and a slash after a slash, `__` and its code.
 */
export function operationIdOf(method: ApiMethod, path: string): string {
  return (
    method + path.replace(/[^A-Za-z0-9]/g, (sign, at: number) => (isFirstSlash(path, at) ? '_' : code(sign)))
  );
}

function isFirstSlash(path: string, at: number): boolean {
  return path[at] === '/' && path[at - 1] !== '/';
}

/** Paths are percent-encoded, so that every sign is ASCII. */
function code(sign: string): string {
  return `__${sign.charCodeAt(0).toString(16).padStart(2, '0')}`;
}
