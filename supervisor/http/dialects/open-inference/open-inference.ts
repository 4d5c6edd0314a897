/**
 * The Open Inference Protocol V2, which clients written for Triton and KServe speak: calls with tensors, and pages about
 * the server and its models. Everything below `/v2` belongs to it, but a route of the app takes precedence.
 */
import { ServeError } from '../../../../protocol/errors.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import { textFailure } from '../../answer/text-error.js';
import { pathTable } from '../../call/path-table.js';
import { TEXT_ERROR } from '../../openapi/errors.js';
import type { RequestContext } from '../../request/request-context.js';
import { writtenPath } from '../../socket/request-facts.js';
import { methodMistake, refusal, type Dialect, type Operation } from '../dialect.js';
import { calledModel, type PathParams } from './called-model.js';
import { describeOpenInference } from './describe.js';
import { callPaths, inferPlan } from './infer.js';
import {
  allStatistics,
  listModels,
  live,
  modelConfig,
  modelMetadata,
  modelReady,
  modelStatistics,
  ready,
  serverMetadata,
} from './pages.js';
import { index, load, unload } from './repository.js';

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
      return { auth, counts: false, methods, act: { refuse: methodMistake(context, methods) } };
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
