/** Chooses the route of an app for a call that names only its model. */
import type { ServeError } from '../../../protocol/errors.js';
import type { Route } from '../../../protocol/wire/messages.js';
import type { ChooseRoute } from './call-plan.js';

const ROOT = '/';

/**
 * Returns a function that chooses the route `/`, else the app's only route. It throws `refusal` of the routes' paths if
 * there are none or several.
 */
export function rootOrOnlyRoute(refusal: (paths: readonly string[]) => ServeError): ChooseRoute {
  return (routes) => {
    const root = routes.get(ROOT);
    if (root !== undefined && isCallable(root)) return ROOT;
    const paths = [...routes.values()].filter(isCallable).map(({ path }) => path);
    const [only] = paths;
    if (only !== undefined && paths.length === 1) return only;
    throw refusal(paths);
  };
}

/** Whether a call over HTTP can reach the route: a WebSocket cannot be called this way. */
function isCallable({ kind }: Route): boolean {
  return kind !== 'websocket';
}
