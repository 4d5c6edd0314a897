/** Cuts the paths of requests for the log: their clients choose how long they are. */

const MAX_CHARS = 1024;

/** The path as lines of the log show it; one that was cut ends in its length. */
export function loggedPath(path: string): string {
  return path.length <= MAX_CHARS ? path : `${path.slice(0, MAX_CHARS)}\u2026 (${path.length} characters)`;
}
