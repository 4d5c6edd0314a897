/** The server's own paths that no call may have, and the methods that each takes, as an `Allow` header lists them. */
import { GATEWAY_PATHS } from './gateway/paths.js';

export const OWN_PATHS: ReadonlyMap<string, string> = new Map([
  ['/healthcheck', 'GET, HEAD'],
  ['/livez', 'GET, HEAD'],
  ['/readyz', 'GET, HEAD'],
  ['/status', 'GET, HEAD'],
  ['/_k/warmup', 'GET, HEAD, POST'],
  ...[...GATEWAY_PATHS.keys()].map((path) => [path, 'POST'] as const),
]);
