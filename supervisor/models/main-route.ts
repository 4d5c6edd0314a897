/** The route of a call that names none. */
import type { ServeError } from '../../protocol/errors.js';
import type { Route } from '../../protocol/wire/messages.js';
import type { Routes } from './generations.js';

const ROOT = '/';

/**
 * Returns a function that chooses the route `/`, else the app's only route. It throws `refusal` of the routes' paths if
 * there are none or several.
 */
export function rootOrOnlyRoute(
  refusal: (paths: readonly string[]) => ServeError,
): (routes: Routes) => string {
  return (routes) => {
    const path = mainRouteOf(routes);
    if (path === null) throw refusal(callablePaths(routes));
    return path;
  };
}

/** Returns the path of the route `/`, else of the app's only route; null if there are none or several. */
export function mainRouteOf(routes: Routes): string | null {
  const root = routes.get(ROOT);
  if (root !== undefined && isCallable(root)) return ROOT;
  const [only, ...others] = callablePaths(routes);
  return only === undefined || others.length > 0 ? null : only;
}

function callablePaths(routes: Routes): string[] {
  return [...routes.values()].filter(isCallable).map(({ path }) => path);
}

/** Whether a call over HTTP can reach the route: a WebSocket cannot be called this way. */
function isCallable({ kind }: Route): boolean {
  return kind !== 'websocket';
}
