/** Chooses the route of a call that names only the model, and waits for the answer. */
import { ServeError } from '../../../protocol/errors.js';
import type { Route } from '../../../protocol/wire/messages.js';
import { rootOrOnlyRoute } from '../../models/main-route.js';
import type { ChooseRoute } from './call-plan.js';

/** `model`: its name. The chooser throws SERVE_BAD_REQUEST if no route is meant, or one that no client could wait for. */
export function chooseRoute(model: string): ChooseRoute {
  const own = (path: string): string => `/models/${model}${path}`;
  return (routes) => {
    const path = rootOrOnlyRoute((paths) => notOne(model, paths, [...routes.values()], own))(routes);
    if (routes.get(path)?.kind !== 'background') return path;
    throw refusal(
      `The route ${path} of the model ${model} runs in the background: call it by POST ${own(path)}, whose answer names the page of the result.`,
    );
  };
}

function notOne(
  model: string,
  paths: readonly string[],
  all: readonly Route[],
  own: (path: string) => string,
): ServeError {
  if (paths.length > 0)
    return refusal(
      `The model ${model} has no route /, and several others; call one of them: ${paths.map((path) => `POST ${own(path)}`).join(', ')}.`,
    );
  const sockets = all.filter(({ kind }) => kind === 'websocket').map(({ path }) => own(path));
  const hint = sockets.length === 0 ? '' : ` Open a WebSocket at ${sockets.join(', ')}.`;
  return refusal(`The model ${model} has no route that takes a call.${hint}`);
}

function refusal(message: string): ServeError {
  return new ServeError('SERVE_BAD_REQUEST', message);
}
