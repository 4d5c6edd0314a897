/** Plans a call: the route that a call of the model means, and the format in which the worker reads and writes it. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Route } from '../../../../protocol/wire/messages.js';
import type { Model } from '../../../models/model.js';
import { rootOrOnlyRoute } from '../../../models/main-route.js';
import type { CallPath, CalledRoute } from '../../request/call-paths.js';
import type { CallPlan, ChooseRoute } from '../dialect.js';

/** The format of both workers, by the name of its file. */
const FORMAT = 'open-inference';

/** `namesVersion`: the request names the version of the model. */
export function inferPlan(model: Model, namesVersion: boolean): CallPlan {
  const { name, version } = model.spec;
  const target = { model, route: chooseRoute(name), namesVersion };
  return { target, format: FORMAT, answer: FORMAT, dialectParams: { model: name, version } };
}

/** Calls take tensors, not the app's own input. */
export function callPaths({
  model: { name, version },
  route,
  isDefaultVersion,
  isMain,
}: CalledRoute): CallPath[] {
  if (!isMain || route.kind !== 'handler') return [];
  const versioned = { path: `/v2/models/${name}/versions/${version}/infer` };
  return isDefaultVersion ? [{ path: `/v2/models/${name}/infer` }, versioned] : [versioned];
}

/** The chooser throws SERVE_BAD_REQUEST if no route is meant, or one that no client could wait for. */
function chooseRoute(model: string): ChooseRoute {
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
