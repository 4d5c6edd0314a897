/** Which route of an app is called where only its model is named. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Route } from '../../../../protocol/wire/messages.js';
import type { ChooseRoute } from '../dialect.js';

const ROOT = '/';

/** Its route `/`, else the only one that it has. @throws SERVE_NOT_FOUND, naming them, if it has several */
export const chooseRoute: ChooseRoute = (routes) => {
  const root = routes.get(ROOT);
  if (root !== undefined && isCallable(root)) return ROOT;
  const paths = [...routes.values()].filter(isCallable).map(({ path }) => path);
  const [only] = paths;
  if (only !== undefined && paths.length === 1) return only;
  throw new ServeError('SERVE_NOT_FOUND', `The app of this model has no route /, ${othersOf(paths)}`);
};

/** A WebSocket is none of these calls. */
function isCallable({ kind }: Route): boolean {
  return kind !== 'websocket';
}

function othersOf(paths: readonly string[]): string {
  if (paths.length === 0) return 'and no other that can be called by POST.';
  return `but ${paths.join(', ')}: call one of these at /models/{model_name}{route}.`;
}
