/**
 * The inference API of Multi Model Server: calls of any model by its name, whatever API its app is written in; `/ping`;
 * and a description of both. A route of the app takes precedence over the same path here: the house dialect is asked
 * first.
 *
 * Paths are read as that server reads them (`request.ts`), and nearly every method is a call.
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { ModelRef, Models } from '../../../models/models.js';
import type { CallPath, CalledRoute } from '../../request/call-paths.js';
import type { RequestContext } from '../../request/request-context.js';
import { queryOf } from '../../socket/request-facts.js';
import type { WriteAnswer } from '../../answer/koa-answers.js';
import type { ApiPaths } from '../../openapi/operation.js';
import type { CallPlan, DefaultDialect, Operation, Target } from '../dialect.js';
import { mmsStyle, writeMmsJson } from './answer-style.js';
import { INFERENCE_API, describeApi, describeInference, modelApi } from './describe.js';
import { pingStatus } from './management-views.js';
import { findNamed, isModel, segmentsOf } from './request.js';
import type { Model } from '../../../models/model.js';
import { formField, targetNamedBy } from '../../call/find-model.js';
import { rootOrOnlyRoute } from '../../../models/main-route.js';

const CALL_METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS';
const PAGE_METHODS = 'GET, HEAD, OPTIONS';
const ROOT_METHODS = 'OPTIONS';

/** `api`: all paths of the listener of this dialect, for its description. */
export function inferenceDialect(api: ApiPaths): DefaultDialect {
  return {
    name: 'mms',
    paths: new Map(Object.entries(INFERENCE_API).map(([path, methods]) => [path, methodsOf(path, methods)])),
    claim: (context, models) => claim(context, models, api),
    unclaimed,
    describe: describeInference,
    callPaths,
    ...mmsStyle,
  };
}

export const mmsInference = inferenceDialect(INFERENCE_API);

/** `/invocations` names the model elsewhere than in its path. */
function callPaths({ model: { name, version }, route, isDefaultVersion, isMain }: CalledRoute): CallPath[] {
  if (!isMain || route.kind === 'websocket') return [];
  const versioned = { path: `/predictions/${name}/${version}` };
  if (!isDefaultVersion) return [versioned];
  return [
    { path: `/predictions/${name}` },
    versioned,
    { path: `/models/${name}/invoke` },
    { path: `/${name}/predict`, isDeprecated: true },
  ];
}

function methodsOf(path: string, { post }: ApiPaths[string]): string {
  if (post !== undefined) return CALL_METHODS;
  return path === '/' ? ROOT_METHODS : PAGE_METHODS;
}

function claim(context: RequestContext, models: Models, api: ApiPaths): Operation | null {
  const [first, second, third, ...more] = segmentsOf(context);
  if (first === undefined) return rootOperation(context, api);
  if (second === undefined) return pageOperation(context, models, first, api);
  if (first === 'predictions') {
    const ref = third === undefined ? { name: second } : { name: second, version: third };
    return modelOperation(context, models, ref, '');
  }
  if (first === 'models' && third === 'invoke' && more.length === 0)
    return modelOperation(context, models, { name: second }, queryOf(context));
  if (second !== 'predict' || third !== undefined || !isModel(models, first)) return null;
  return modelOperation(context, models, { name: first }, queryOf(context));
}

/** Refuses a request that no dialect of the listener claims. */
function unclaimed(context: RequestContext): Operation {
  const [first, second, third] = segmentsOf(context);
  if (first === undefined) return refusal(new ServeError('SERVE_METHOD_NOT_ALLOWED'), ROOT_METHODS);
  if (second === 'predict' && third === undefined)
    return refusal(new ServeError('SERVE_MODEL_NOT_FOUND', `Model not found: ${first}`));
  return refusal(new ServeError('SERVE_NOT_FOUND'));
}

function refusal(refuse: ServeError, methods = ''): Operation {
  return { auth: 'call', counts: false, methods, act: { refuse } };
}

/** Only OPTIONS of the root is answered here, on a server without an app. */
function rootOperation({ request, backend }: RequestContext, api: ApiPaths): Operation | null {
  return request.method === 'OPTIONS' && backend.isMmsMode ? description(api, ROOT_METHODS) : null;
}

function description(api: ApiPaths, methods: string): Operation {
  return {
    auth: 'call',
    counts: false,
    methods,
    act: {
      write: (ctx, { request }) => {
        if (request.method === 'OPTIONS') ctx.set('Allow', methods);
        writeMmsJson(ctx, 200, describeApi(api));
      },
    },
  };
}

function pageOperation(
  context: RequestContext,
  models: Models,
  name: string,
  api: ApiPaths,
): Operation | null {
  const { method = '' } = context.request;
  switch (name) {
    case 'ping':
      return { auth: 'none', counts: false, methods: PAGE_METHODS, act: { write: writePing } };
    case 'api-description':
      if (PAGE_METHODS.split(', ').includes(method)) return description(api, PAGE_METHODS);
      return refusal(new ServeError('SERVE_METHOD_NOT_ALLOWED'), PAGE_METHODS);
    case 'invocations':
      if (method === 'OPTIONS') return description(api, CALL_METHODS);
      return callOf(context, invocationTarget(context, models), queryOf(context));
    default:
      return null;
  }
}

const writePing: WriteAnswer = (ctx, { backend }) => {
  const isDraining = backend.readiness().state === 'draining';
  const status = isDraining ? 'Unhealthy' : pingStatus(backend.models.describe());
  const isRefused = status === 'Unhealthy' && backend.options.ping === 'health';
  writeMmsJson(ctx, isRefused ? 503 : 200, { status });
};

/** `params`: the query, where it belongs to the model's input. */
function modelOperation(context: RequestContext, models: Models, ref: ModelRef, params: string): Operation {
  const model = findNamed(context, models, ref);
  if (context.request.method === 'OPTIONS')
    return description(modelApi(ref.name, ref.version ?? ''), CALL_METHODS);
  return callOf(context, { ...targetOf(model), namesVersion: ref.version !== undefined }, params);
}

function callOf(
  { request: { method } }: RequestContext,
  target: CallPlan['target'],
  params: string,
): Operation {
  if (method === 'HEAD') return refusal(new ServeError('SERVE_METHOD_NOT_ALLOWED'), CALL_METHODS);
  return { auth: 'call', counts: true, methods: CALL_METHODS, act: { target, format: 'auto', params } };
}

/**
 * Returns the route that a call of this model means. @throws SERVE_NOT_FOUND if the app is loaded and no route is meant
 */
function targetOf(model: Model): Target {
  return { model, route: model.routes === null ? chooseRoute : chooseRoute(model.routes) };
}

/** @throws SERVE_NOT_FOUND, naming the routes */
const chooseRoute = rootOrOnlyRoute((paths) => {
  const others =
    paths.length === 0
      ? ' and no other route that takes POST.'
      : `; call one of ${paths.join(', ')} at /models/{model_name}{route}.`;
  return new ServeError('SERVE_NOT_FOUND', `The app of this model has no route /${others}`);
});

const FIELD = 'model_name';

/**
 * Finds the model that the query names, else the one in the beginning of a form, else the only model of the start.
 * @throws SERVE_MODEL_NOT_FOUND, and SERVE_BAD_REQUEST if there is more than one
 */
function invocationTarget(context: RequestContext, models: Models): CallPlan['target'] {
  const named = (name: string | null): Target =>
    targetOf(name === null || name === '' ? onlyModel(models) : findNamed(context, models, { name }));
  const inQuery = new URLSearchParams(queryOf(context)).get(FIELD) ?? '';
  const find = formField(context.request.headers['content-type'] ?? '', FIELD);
  return inQuery !== '' || find === null ? named(inQuery) : targetNamedBy(find, named);
}

function onlyModel(models: Models): Model {
  const names = new Set<string>();
  for (const { model, isFirst, isLeaving } of models.describe())
    if (isFirst && !isLeaving) names.add(model.spec.name);
  const [name] = names;
  if (name !== undefined && names.size === 1) return models.find({ name });
  throw new ServeError('SERVE_BAD_REQUEST', `Parameter ${FIELD} is required.`);
}
