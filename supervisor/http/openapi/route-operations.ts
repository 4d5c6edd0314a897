/** Describes calls: of routes at their own paths, and of models by their names. */
import type { RouteKind } from '../../../protocol/wire/messages.js';
import { CALL_FAILURES, HANDSHAKE_FAILURES } from './call-failures.js';
import { ACCEPTED, bodyOf, describedRoutes, replyOf, type DescribedRoute } from './model-routes.js';
import { operationIdOf } from './operation-id.js';
import { writtenPath, type ApiReplies, type DescribedOperation, type DescribedServer } from './operation.js';

/** The app's routes have other statuses too; their bodies are the app's, so no schema is given. */
const OF_THE_APP: ApiReplies = {
  default: { description: 'A status of the app, with a body of its choice.' },
};

/** Describes the routes of the default model at their paths, and those of every model below `/models/{name}`. */
export function* routeOperations({ models }: Pick<DescribedServer, 'models'>): Generator<DescribedOperation> {
  const byDefault = models.default;
  if (byDefault !== null)
    for (const route of describedRoutes(byDefault).all) yield routeOperation('', route, byDefault.spec.name);
  for (const { model, isDefault, isLeaving } of models.describe()) {
    if (!isDefault || isLeaving) continue;
    const { name } = model.spec;
    for (const route of describedRoutes(model).all)
      yield routeOperation(`/models/${name}`, route, name, model === byDefault ? 'ByName' : '');
  }
}

/** `family`: empty for the best path of the route. */
function routeOperation(
  prefix: string,
  route: DescribedRoute,
  name: string,
  family = '',
): DescribedOperation {
  const path = writtenPath(prefix + route.path);
  const description = `${VERBS[route.kind]} ${route.path} of the model ${name}.`;
  const operationId = operationIdOf(OPENERS[route.kind], name, route.path, family);
  const common = { path, operationId, description, auth: 'call', ownsPath: true } as const;
  return route.kind === 'websocket'
    ? { ...common, method: 'get', isWebSocket: true, responses: OPENED, failures: HANDSHAKE_FAILURES }
    : { ...common, method: 'post', ...callParts(route) };
}

/** The first words of names. */
const OPENERS: Readonly<Record<RouteKind, string>> = {
  handler: 'call',
  background: 'start',
  websocket: 'open',
};

/** The first words of descriptions. */
const VERBS: Readonly<Record<RouteKind, string>> = {
  handler: 'Calls the route',
  background: 'Starts a job of the route',
  websocket: 'Opens a WebSocket, to which a page may send its key as a subprotocol, at the route',
};

const OPENED: ApiReplies = { 101: { description: 'The WebSocket is open.' } };

/** The parts of every description of a call. */
export function callParts(
  route: DescribedRoute,
): Pick<DescribedOperation, 'requestBody' | 'responses' | 'failures'> {
  return {
    requestBody: bodyOf(route),
    responses: { 200: replyOf(route), 202: ACCEPTED, ...(route.kind === 'handler' ? OF_THE_APP : {}) },
    failures: CALL_FAILURES,
  };
}
