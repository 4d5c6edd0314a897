/**
 * The Open Inference Protocol V2, which clients written for Triton and KServe speak: calls with tensors, and pages about
 * the server and its models. Everything below `/v2` belongs to it, but a route of the app takes precedence.
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { RequestContext } from '../../request/request-context.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import { PathTable } from '../../call/path-table.js';
import { writtenPath } from '../../socket/request-facts.js';
import type { Dialect, Operation } from '../dialect.js';
import { describeOpenInference, OPEN_INFERENCE_ERROR } from './describe.js';
import { openInferenceFailure } from './failures.js';
import { callPaths } from './infer.js';
import { openInferencePaths } from './paths.js';

const ROOT = '/v2';

/** `managesModels`: whether the listener has the management API, to which the model repository belongs. */
function dialectWith(managesModels: boolean): Dialect {
  const rows = openInferencePaths(managesModels);
  const table = new PathTable(rows);
  return {
    name: 'open-inference',
    paths: new Map(rows.map(([path, { methods }]) => [path, methods])),
    owns: isBelowRoot,
    claim(context) {
      const { path, listener, isWebSocket } = context;
      if (!isBelowRoot(path)) return null;
      const found = listener === 'metrics' || isWebSocket ? null : table.find(path);
      // A WebSocket of an app that is not loaded yet is left to the house dialect.
      if (found === null) return { ...refusal(context, noPath(context)), isGuess: isWebSocket };
      const { act, ...operation } = found.value;
      const { auth, methods } = operation;
      if (methods.split(', ').includes(context.request.method ?? ''))
        return { ...operation, act: act(context, found.params) };
      return { auth, counts: false, methods, act: { refuse: noMethod(context, methods) } };
    },
    fail: (error, _requestId, context) => openInferenceFailure(error, context),
    callPaths,
    errorBody: OPEN_INFERENCE_ERROR,
    describe: (server) => describeOpenInference(server, managesModels),
    clientHeaders: {
      key: BANANA_CLIENTS.clientHeaders.key,
      readable: ['Inference-Header-Content-Length'],
    },
  };
}

export const openInference = dialectWith(false);
export const openInferenceWithRepository = dialectWith(true);

function isBelowRoot(path: string): boolean {
  return path === ROOT || path.startsWith(`${ROOT}/`);
}

function refusal({ request }: RequestContext, refuse: ServeError): Operation {
  return { auth: 'call', counts: request.method === 'POST', methods: '', act: { refuse } };
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

function noMethod({ request: { method, url } }: RequestContext, methods: string): ServeError {
  return new ServeError('SERVE_METHOD_NOT_ALLOWED', `${writtenPath(url)} takes ${methods}, not ${method}.`);
}
