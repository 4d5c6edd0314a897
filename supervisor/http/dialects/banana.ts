/**
 * The house dialect, which is Banana's: `POST` to the app's routes, whatever API the app is written in (the content
 * type decides the body's format); WebSockets; and health and status pages, answered at once however busy the workers
 * are. The default model's routes have their own paths; the routes of every model are at `/models/{name}/…`.
 */
import { ServeError } from '../../../protocol/errors.js';
import { STATUS_PATH } from '../../../protocol/reserved-paths.js';
import type { Model } from '../../models/model.js';
import type { Models } from '../../models/models.js';
import type { RequestContext, Backend, ReadinessAnswer } from '../request/request-context.js';
import { hiddenBecause } from '../access/app-words.js';
import { BANANA_CLIENTS, isBananaClient } from '../access/client-headers.js';
import { houseFailure } from '../answer/house-error.js';
import type { WriteAnswer } from '../answer/koa-answers.js';
import { modelNames } from '../call/find-model.js';
import { pathTable } from '../call/path-table.js';
import { HOUSE_ERROR } from '../openapi/errors.js';
import { operationsOf } from '../openapi/operation.js';
import { routeOperations } from '../openapi/routes.js';
import { isRead, writtenPath } from '../socket/request-facts.js';
import paths from './banana.json' with { type: 'json' };
import {
  methodMistake,
  refusal,
  writeMethods,
  writeReadiness,
  wrongMethod,
  type DefaultDialect,
  type NamedTarget,
  type Operation,
} from './dialect.js';

const READYZ_PREFIX = '/readyz/';

/** Pages that the front itself answers to `GET` and `HEAD`. Only the page of `/status` needs the key of calls. */
const PAGES: Readonly<Record<string, WriteAnswer>> = {
  // The Banana platform's probe: `state` and `gpu` first, any 200 means ready.
  '/healthcheck': (ctx, { backend }) => {
    const { ready, state } = backend.readiness();
    ctx.status = ready ? 200 : 503;
    ctx.body = { state: ready ? 'healthy' : state, gpu: backend.hasGpu };
  },
  // The front is alive if it can answer; restarting it would not repair a model, and would lose the warm workers.
  '/livez': (ctx) => void (ctx.body = { state: 'alive' }),
  '/readyz': (ctx, { backend }) => writeReadiness(ctx, backend.readiness()),
  // Strict: ready only if this model has a ready worker.
  [`${READYZ_PREFIX}{model}`]: (ctx, { backend, path }) =>
    writeReadiness(ctx, readinessOf(backend, path.slice(READYZ_PREFIX.length))),
  [STATUS_PATH]: (ctx, context) => {
    ctx.body = context.backend.status(hiddenBecause(context) === null);
  },
};

const findPage = pathTable(PAGES);
const PAGE_METHODS = 'GET, HEAD';
const PAGE = { auth: 'call', counts: false, methods: PAGE_METHODS } as const;
const DESCRIBED_PAGES = operationsOf(paths);

/**
 * Returns the readiness of one model. @throws SERVE_MODEL_NOT_FOUND, without the names of models if a key is needed to
 * learn them
 */
function readinessOf(backend: Backend, name: string): ReadinessAnswer {
  try {
    return backend.readiness({ name });
  } catch (thrown) {
    throw backend.keys.required && thrown instanceof ServeError ? new ServeError(thrown.code) : thrown;
  }
}

export const banana: DefaultDialect = {
  name: 'banana',
  ...BANANA_CLIENTS,
  paths: new Map(Object.keys(PAGES).map((path) => [path, PAGE_METHODS])),

  claim(context, models) {
    const { path, request } = context;
    const page = request.method === 'POST' ? null : findPage(path);
    if (page !== null && isRead(request))
      return { ...PAGE, auth: path === STATUS_PATH ? 'call' : 'none', act: { write: page.value } };
    const target = findRoute(path, models);
    if (target instanceof ServeError) return { ...refusal(context, target), isGuess: true };
    if (target !== null) return routeOperation(context, target);
    if (findPage(path) === null) return guessRoute(context, models);
    return wrongMethod(context, PAGE_METHODS);
  },

  unclaimed(context, models) {
    const { method } = context.request;
    if (method === 'OPTIONS' && context.path === '/')
      return { ...PAGE, methods: 'OPTIONS', act: { write: writeMethods('OPTIONS') } }; // also if no app has this route
    return refusal(context, new ServeError('SERVE_NOT_FOUND', notFoundMessage(context, models)));
  },

  callPaths({ model, route, isDefault, isDefaultVersion }) {
    const own = isDefault ? [route.path] : [];
    const named = isDefaultVersion ? [MODELS_PREFIX + model.name + route.path] : [];
    return [...own, ...named].map((path) => ({ path }));
  },

  fail: houseFailure,
  errorBody: HOUSE_ERROR,
  describe: (server) => [...DESCRIBED_PAGES, ...routeOperations(server)],

  // Fixed by Potassium, whose clients may compare it.
  startedBody: '{"started":true}\n',
};

const MODELS_PREFIX = '/models/';

/**
 * Finds the model and route of a path; an error if the path names a model that does not exist; null if the path is not
 * known to be a route.
 */
function findRoute(path: string, models: Models): NamedTarget | ServeError | null {
  const model = models.default;
  if (model !== null && model.routes?.has(path) === true) return { model, route: path };
  const nameEnd = path.startsWith(MODELS_PREFIX) ? path.indexOf('/', MODELS_PREFIX.length) : -1;
  if (nameEnd < 0) return null;
  try {
    const named = models.find({ name: path.slice(MODELS_PREFIX.length, nameEnd) });
    const route = path.slice(nameEnd);
    return named.routes?.has(route) === false ? null : { model: named, route };
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    return model !== null && model.routes === null ? null : thrown; // it may be a route of the default model, which is not loaded yet
  }
}

/** Until the default model is loaded its routes are unknown: a call waits in case its path is one of them. */
function guessRoute(context: RequestContext, models: Models): Operation | null {
  const model = models.default;
  const mayBeRoute = context.request.method === 'POST' || context.isWebSocket || context.path === '/';
  if (model === null || model.routes !== null || !mayBeRoute) return null;
  return routeOperation(context, { model, route: context.path });
}

/** Returns the operation of a request for a route, whether the route is known or only assumed. */
function routeOperation(context: RequestContext, target: NamedTarget): Operation {
  const { method, headers } = context.request;
  const { routes } = target.model;
  const route = routes?.get(target.route);
  const isSocket = route?.kind === 'websocket';
  const methods = isSocket ? 'GET, OPTIONS' : 'POST, OPTIONS';
  const common = { auth: 'call', counts: method === 'POST', methods, isGuess: routes === null } as const;
  // These clients decode an answer chunk by chunk, and break a character that is split between two chunks.
  const asciiJson = isBananaClient(headers);
  if (method === 'POST') {
    // Nearly every request: spreading `common` would take longer than all else here.
    const act = { target, format: 'auto', asciiJson };
    return { auth: 'call', counts: true, methods, isGuess: routes === null, act };
  }
  if (context.isWebSocket && (isSocket || route === undefined))
    return { ...common, act: { target, format: 'websocket', asciiJson } };
  if (method === 'OPTIONS') return { ...common, act: { write: writeMethods(methods) } };
  const refuse = isSocket ? new ServeError('SERVE_UPGRADE_REQUIRED') : methodMistake(context, methods);
  return { ...common, act: { refuse } };
}

function notFoundMessage(
  { backend, path, request: { method, url } }: RequestContext,
  models: Models,
): string {
  const nothing = `There is no ${method} ${writtenPath(url)} here.`;
  const named = namedModel(path, models);
  const model = named ?? models.default;
  if (model !== null && !backend.keys.required) return `${nothing} ${routesSentence(model, named !== null)}`;
  return models.default === null ? `${nothing} ${modelsSentence(models)}` : nothing;
}

function modelsSentence(models: Models): string {
  const names = modelNames(models);
  if (names.length === 0) return 'This server has no models now.';
  return `The models of this server answer at ${listed(names.map((name) => `${MODELS_PREFIX}${name}/`))}.`;
}

/** Returns the model whose name is in the path; null if there is none. */
function namedModel(path: string, models: Models): Model | null {
  if (!path.startsWith(MODELS_PREFIX)) return null;
  const [name = ''] = path.slice(MODELS_PREFIX.length).split('/');
  return Array.from(models.all()).find(({ spec }) => spec.name === name) ?? null;
}

/** Lists the routes of a model, by the path that contains its name or by their own. */
function routesSentence({ spec, routes }: Model, withName: boolean): string {
  const prefix = withName ? MODELS_PREFIX + spec.name : '';
  const paths = [...(routes?.values() ?? [])].map(({ kind, path }) => {
    const verb = kind === 'websocket' ? 'WebSocket' : 'POST';
    return `${verb} ${encodeURI(prefix + path)}`;
  });
  return paths.length === 0 ? 'The app is not loaded yet.' : `Routes here: ${listed(paths)}.`;
}

function listed(paths: readonly string[]): string {
  const others = paths.length > MAX_NAMED_PATHS ? ` and ${paths.length - MAX_NAMED_PATHS} more` : '';
  return paths.slice(0, MAX_NAMED_PATHS).join(', ') + others;
}

/** Maximum number of paths in a message. */
const MAX_NAMED_PATHS = 20;
