/**
 * The inference API of Multi Model Server: calls of any model by its name, whatever its app is written as; `/ping`; and a
 * description of both. A route of the app by the same path is the app's: the house dialect is asked first.
 *
 * Paths are read as that server reads them (`path.ts`), and nearly every method is a call.
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { ModelRef, Models } from '../../../models/models.js';
import type { Ask } from '../../request/request-context.js';
import type { WriteAnswer } from '../../answer/koa-answers.js';
import type { CallPlan, DefaultDialect, Operation } from '../dialect.js';
import { describeApi, type ApiPaths } from './describe-api.js';
import { findModel, isModel } from './find-model.js';
import { INFERENCE_API, modelApi } from './inference-api.js';
import { writeMmsJson } from './json.js';
import { queryOf, segmentsOf } from './path.js';
import { pingStatus } from './ping.js';
import { invocationTarget, targetOf } from './target.js';
import { mmsVoice } from './voice.js';

const CALL_METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS';
const PAGE_METHODS = 'GET, HEAD, OPTIONS';
const ROOT_METHODS = 'OPTIONS';

/** `api`: everything that the listener of this dialect has, for its description. */
export function inferenceDialect(api: ApiPaths): DefaultDialect {
  return {
    name: 'mms',
    paths: new Map(Object.entries(INFERENCE_API).map(([path, methods]) => [path, methodsOf(path, methods)])),
    claim: (ask, models) => claim(ask, models, api),
    unclaimed,
    ...mmsVoice,
  };
}

export const mmsInference = inferenceDialect(INFERENCE_API);

function methodsOf(path: string, { post }: ApiPaths[string]): string {
  if (post !== undefined) return CALL_METHODS;
  return path === '/' ? ROOT_METHODS : PAGE_METHODS;
}

/** While the default model is being loaded, what would be refused here may be a route of its app. */
function claim(ask: Ask, models: Models, api: ApiPaths): Operation | null {
  try {
    return claimPath(ask, models, api);
  } catch (thrown) {
    if (thrown instanceof ServeError && models.default?.routes === null) return null;
    throw thrown;
  }
}

function claimPath(ask: Ask, models: Models, api: ApiPaths): Operation | null {
  const [first, second, third, ...more] = segmentsOf(ask);
  if (first === undefined) return rootOperation(ask, models, api);
  if (second === undefined) return pageOperation(ask, models, first, api);
  if (first === 'predictions') {
    const ref = third === undefined ? { name: second } : { name: second, version: third };
    return modelOperation(ask, models, ref, '');
  }
  if (first === 'models' && third === 'invoke' && more.length === 0)
    return modelOperation(ask, models, { name: second }, queryOf(ask));
  if (second !== 'predict' || third !== undefined || !isModel(models, first)) return null;
  return modelOperation(ask, models, { name: first }, queryOf(ask));
}

/** For a listener on which nobody else answers. */
function unclaimed(ask: Ask): Operation {
  const [first, second, third] = segmentsOf(ask);
  if (first === undefined) return refusal(new ServeError('SERVE_METHOD_NOT_ALLOWED'), ROOT_METHODS);
  if (second === 'predict' && third === undefined)
    return refusal(new ServeError('SERVE_MODEL_NOT_FOUND', `Model not found: ${first}`));
  return refusal(new ServeError('SERVE_NOT_FOUND'));
}

function refusal(refuse: ServeError, methods = ''): Operation {
  return { auth: 'call', counts: false, methods, act: { refuse } };
}

/** The root is the app's but for this one method. */
function rootOperation(ask: Ask, models: Models, api: ApiPaths): Operation | null {
  if (ask.request.method !== 'OPTIONS') return null;
  const root = models.default?.routes;
  const isSocket = root?.get('/')?.kind === 'websocket';
  const isRoute = models.default !== null && (root === null || root?.has('/') === true);
  const methods = isRoute ? `${isSocket ? 'GET' : 'POST'}, ${ROOT_METHODS}` : ROOT_METHODS;
  return description(api, methods);
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

function pageOperation(ask: Ask, models: Models, name: string, api: ApiPaths): Operation | null {
  const { method = '' } = ask.request;
  switch (name) {
    case 'ping':
      return { auth: 'none', counts: false, methods: PAGE_METHODS, act: { write: writePing } };
    case 'api-description':
      if (PAGE_METHODS.split(', ').includes(method)) return description(api, PAGE_METHODS);
      return refusal(new ServeError('SERVE_METHOD_NOT_ALLOWED'), PAGE_METHODS);
    case 'invocations':
      if (method === 'OPTIONS') return description(api, CALL_METHODS);
      return callOf(ask, invocationTarget(ask, models), queryOf(ask));
    default:
      return null;
  }
}

const writePing: WriteAnswer = (ctx, { backend }) => {
  const isGoing = backend.readiness().state === 'draining';
  const status = isGoing ? 'Unhealthy' : pingStatus(backend.models.describe());
  const isRefused = status === 'Unhealthy' && backend.options.ping === 'health';
  writeMmsJson(ctx, isRefused ? 503 : 200, { status });
};

/** `params`: the query, where it is for the model. */
function modelOperation(ask: Ask, models: Models, ref: ModelRef, params: string): Operation {
  const model = findModel(ask, models, ref);
  if (ask.request.method === 'OPTIONS')
    return description(modelApi(ref.name, ref.version ?? ''), CALL_METHODS);
  return callOf(ask, targetOf(ask, models, model), params);
}

function callOf({ request: { method } }: Ask, target: CallPlan['target'], params: string): Operation {
  if (method === 'HEAD') return refusal(new ServeError('SERVE_METHOD_NOT_ALLOWED'), CALL_METHODS);
  return { auth: 'call', counts: true, methods: CALL_METHODS, act: { target, format: 'auto', params } };
}
