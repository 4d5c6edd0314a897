/**
 * The Open Inference Protocol V2, which clients written for Triton and KServe speak: calls with tensors, and pages about
 * the server and its models. Everything below `/v2` belongs to it, but a route of the app takes precedence.
 */
import { ServeError } from '../../../../protocol/errors.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import { textFailure } from '../../answer/house-error.js';
import { pathTable } from '../../call/path-table.js';
import { TEXT_ERROR, CALL_FAILURES } from '../../openapi/errors.js';
import type { RequestContext } from '../../request/request-context.js';
import { writtenPath } from '../../socket/request-facts.js';
import { refusal, wrongMethod, type Dialect, type Operation, type CallPlan } from '../dialect.js';
import {
  allStatistics,
  calledModel,
  listModels,
  live,
  modelConfig,
  modelMetadata,
  modelReady,
  modelStatistics,
  ready,
  serverMetadata,
  type PathParams,
} from './pages.js';
import { index, load, unload } from './repository.js';
import type { Model } from '../../../models/model.js';
import { chooseRoute } from '../../call/find-route.js';
import type { CallPath, CalledRoute } from '../../request/call-paths.js';
import type { LoadedInfo } from '../../../../protocol/wire/messages.js';
import {
  operationIdOf,
  operationsOf,
  encodedPath,
  type DescribedOperation,
  type DescribedServer,
} from '../../openapi/operation.js';
import { describedRoutes } from '../../openapi/routes.js';
import { DATATYPE } from '../../openapi/schemas.js';
import paths from './paths.json' with { type: 'json' };

const ROOT = '/v2';

/** `managesModels`: whether the listener has the management API, to which the model repository belongs. */
function dialectWith(managesModels: boolean): Dialect {
  const paths = pathsOf(managesModels);
  const find = pathTable(paths);
  return {
    name: 'open-inference',
    paths: new Map(Object.entries(paths).map(([path, { methods }]) => [path, methods])),
    owns: isBelowRoot,
    claim(context) {
      const { path, listener, isWebSocket } = context;
      if (!isBelowRoot(path)) return null;
      const found = listener === 'metrics' || isWebSocket ? null : find(path);
      // A WebSocket of an app that is not loaded yet is left to the house dialect.
      if (found === null) return { ...refusal(context, noPath(context)), isGuess: isWebSocket };
      const { act, ...operation } = found.value;
      const { auth, methods } = operation;
      if (methods.split(', ').includes(context.request.method ?? ''))
        return { ...operation, act: act(context, found.params) };
      return wrongMethod(context, methods, auth);
    },
    fail: (error, _requestId, context) => textFailure(error, context),
    callPaths,
    errorBody: TEXT_ERROR,
    describe: (server) => describeOpenInference(server, managesModels),
    clientHeaders: {
      key: BANANA_CLIENTS.clientHeaders.key,
      readable: ['Inference-Header-Content-Length'],
    },
  };
}

function isBelowRoot(path: string): boolean {
  return path === ROOT || path.startsWith(`${ROOT}/`);
}

/** The path is shown as written, so that nothing in it can end its line. */
function noPath({ path, request: { method, url } }: RequestContext): ServeError {
  const absent = ABSENT.find(([pattern]) => pattern.test(path))?.[1];
  const why = absent === undefined ? '.' : `: this server has no ${absent}.`;
  return new ServeError('SERVE_NOT_FOUND', `There is no ${method} ${writtenPath(url)} here${why}`);
}

/** Extensions of Triton that its clients ask for by a path. */
const ABSENT: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/^\/v2(?:\/models\/.+)?\/trace(?:\/|$)/, 'trace settings'],
  [/^\/v2\/logging(?:\/|$)/, 'log settings to change; its options are --log-level and --log-format'],
  [/^\/v2\/(?:system|cuda|xpu)sharedmemory(?:\/|$)/, 'shared memory; send tensors as bytes'],
];

/** Everything about a path but its parameters. */
interface OpenInferencePath extends Pick<Operation, 'auth' | 'counts' | 'isLogged' | 'methods'> {
  act(context: RequestContext, params: PathParams): Operation['act'];
}

type Write = (ctx: AnswerContext, context: RequestContext, params: PathParams) => void | Promise<void>;

function page(auth: Operation['auth'], write: Write): OpenInferencePath {
  return {
    auth,
    counts: false,
    methods: 'GET, HEAD',
    act: (_context, params) => ({ write: (ctx, context) => write(ctx, context, params) }),
  };
}

function change(write: Write): OpenInferencePath {
  return { ...page('management', write), isLogged: true, methods: 'POST' };
}

const CALL: OpenInferencePath = {
  auth: 'call',
  counts: true,
  methods: 'POST',
  act: (context, params) => inferPlan(calledModel(context, params), params['version'] !== undefined),
};

const OF_MODEL: Readonly<Record<string, OpenInferencePath>> = {
  '': page('call', modelMetadata),
  '/ready': page('none', modelReady),
  '/config': page('call', modelConfig),
  '/stats': page('call', modelStatistics),
  '/infer': CALL,
};

const REPOSITORY: Readonly<Record<string, OpenInferencePath>> = {
  '/v2/repository/index': change(index),
  '/v2/repository/models/{model}/load': change(load),
  '/v2/repository/models/{model}/unload': change(unload),
};

function pathsOf(managesModels: boolean): Readonly<Record<string, OpenInferencePath>> {
  const ofModels = ['/v2/models/{model}', '/v2/models/{model}/versions/{version}'].flatMap((base) =>
    Object.entries(OF_MODEL).map(([path, one]) => [base + path, one] as const),
  );
  return {
    '/v2': page('call', serverMetadata(managesModels ? ['model_repository'] : [])),
    '/v2/health/live': page('none', live),
    '/v2/health/ready': page('none', ready),
    '/v2/models': page('call', listModels),
    '/v2/models/stats': page('call', allStatistics),
    ...Object.fromEntries(ofModels),
    ...(managesModels ? REPOSITORY : {}),
  };
}

export const openInference = dialectWith(false);
export const openInferenceWithRepository = dialectWith(true);

/** The format of both workers, by the name of its file. */
const FORMAT = 'open-inference';

/** `namesVersion`: the request names the version of the model. */
export function inferPlan(model: Model, namesVersion: boolean): CallPlan {
  const { name, version } = model.spec;
  const target = { model, route: chooseRoute(name), namesVersion };
  return { target, format: FORMAT, answer: FORMAT, dialectParams: { model: name, version } };
}

/** Calls take tensors, not the app's own input. */
function callPaths({ model: { name, version }, route, isDefaultVersion, isMain }: CalledRoute): CallPath[] {
  if (!isMain || route.kind !== 'handler') return [];
  const versioned = { path: `/v2/models/${name}/versions/${version}/infer` };
  return isDefaultVersion ? [{ path: `/v2/models/${name}/infer` }, versioned] : [versioned];
}

const OPERATIONS = operationsOf(paths, { datatype: DATATYPE });
const CALLS = OPERATIONS.filter(({ path }) => path.endsWith('/infer'));
const PAGES = OPERATIONS.filter((operation) => !CALLS.includes(operation));

/** `managesModels`: with the paths of the model repository. */
function* describeOpenInference(
  { models, options: { openapiAll } }: DescribedServer,
  managesModels: boolean,
): Generator<DescribedOperation> {
  const described = models.describe();
  const takesTensors = ({ info }: { readonly info: LoadedInfo | null }): boolean =>
    openapiAll || info?.signature !== undefined;
  if (!openapiAll && !described.some(({ model }) => takesTensors(model))) return;
  yield* PAGES.filter(({ auth }) => managesModels || auth !== 'management');
  for (const { model, isDefault, isLeaving } of described) {
    if (isLeaving || !takesTensors(model) || describedRoutes(model).main?.kind !== 'handler') continue;
    for (const call of CALLS) if (isDefault || namesVersion(call)) yield callOf(call, model.spec);
  }
}

function namesVersion({ path }: DescribedOperation): boolean {
  return path.includes('{version}');
}

function callOf(
  call: DescribedOperation,
  { name, version }: { readonly name: string; readonly version: string },
): DescribedOperation {
  const filled = (text: string): string => text.replace('{model}', name).replace('{version}', version);
  const versioned = namesVersion(call) ? `Version${version}` : '';
  return {
    ...call,
    path: encodedPath(filled(call.path)),
    operationId: operationIdOf('call', name, versioned, 'V2'),
    description: filled(call.description),
    failures: CALL_FAILURES,
  };
}
