/** Chooses the route of an app for a call that names only its model. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Route } from '../../../../protocol/wire/messages.js';
import type { ChooseRoute } from '../dialect.js';

const ROOT = '/';

/**
 * Returns the route `/`, else the app's only route. @throws SERVE_NOT_FOUND, naming the routes, if there are several
 */
export const chooseRoute: ChooseRoute = (routes) => {
  const root = routes.get(ROOT);
  if (root !== undefined && isCallable(root)) return ROOT;
  const paths = [...routes.values()].filter(isCallable).map(({ path }) => path);
  const [only] = paths;
  if (only !== undefined && paths.length === 1) return only;
  throw new ServeError('SERVE_NOT_FOUND', `The app of this model has no route /${otherRoutes(paths)}`);
};

/** Whether a call over HTTP can reach the route: a WebSocket cannot be called this way. */
function isCallable({ kind }: Route): boolean {
  return kind !== 'websocket';
}

function otherRoutes(paths: readonly string[]): string {
  if (paths.length === 0) return ' and no other route that takes POST.';
  return `; call one of ${paths.join(', ')} at /models/{model_name}{route}.`;
}
