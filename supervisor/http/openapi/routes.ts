/**
 * Describes calls: of an app's routes at their own paths and below `/models/{name}`, and the parts of a call that every
 * dialect has. Inputs and outputs follow the app's schemas, else its signature, else its example, else they are free. They are free too while
 * no worker has loaded the app.
 */
import type { LoadedInfo, Route } from '../../../protocol/wire/messages.js';
import type { Model } from '../../models/model.js';
import { JOB_ID_HEADER, JOB_PAGE_HEADER } from '../access/client-headers.js';
import { mainRouteOf } from '../../models/main-route.js';
import { FIRST_VERSION, type FullModelRef } from '../../options/model-name.js';
import { CALL_FAILURES, HANDSHAKE_FAILURES } from './errors.js';
import { operationIdOf, encodedPath, type DescribedOperation, type DescribedServer } from './operation.js';
import {
  BYTES,
  FREE,
  TEXT,
  appSchema,
  inferSchema,
  listedTensors,
  objectOf,
  outputTensors,
  type JsonSchema,
} from './schemas.js';

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
  const [verb, words] = WORDS[route.kind];
  const path = encodedPath(prefix + route.path);
  const description = `${words} ${route.path} of the model ${name}.`;
  const operationId = operationIdOf(verb, name, route.path, family);
  const common = { path, operationId, description, auth: 'call', ownsPath: true } as const;
  return route.kind === 'websocket'
    ? { ...common, method: 'get', isWebSocket: true, responses: OPENED, failures: HANDSHAKE_FAILURES }
    : { ...common, method: 'post', ...callParts(route) };
}

/** The first words of names and of descriptions. */
const WORDS: Readonly<Record<Route['kind'], readonly [verb: string, words: string]>> = {
  handler: ['call', 'Calls the route'],
  background: ['start', 'Starts a job of the route'],
  websocket: ['open', 'Opens a WebSocket, to which a page may send its key as a subprotocol, at the route'],
};

const OPENED = { 101: { description: 'The WebSocket is open.' } };

interface DescribedRoute {
  /** As declared. */
  readonly path: string;
  readonly kind: Route['kind'];
  readonly takesOnlyJson: boolean;
  /** The server itself reads the inputs, which no empty body has, and makes lists of the outputs. */
  readonly isNoCode: boolean;
  /** The JSON that the route takes. */
  readonly input: JsonSchema;
  /** The JSON that it returns. */
  readonly output: JsonSchema;
  /** Components to which these refer. */
  readonly components?: Readonly<Record<string, object>>;
  /** An input; undefined if none is known. */
  readonly example?: unknown;
}

interface DescribedRoutes {
  readonly all: readonly DescribedRoute[];
  /** The route of a call that names only the model; null if there is none, or several. */
  readonly main: DescribedRoute | null;
}

export function describedRoutes({
  info,
  routes,
  spec,
}: Pick<Model, 'info' | 'routes' | 'spec'>): DescribedRoutes {
  if (info === null || routes === null) return LOADING;
  const known = described.get(info);
  if (known !== undefined) return known;
  const main = mainRouteOf(routes);
  const all = info.routes.map((route) => {
    const one = describeRoute(route, route.path === main ? info : null);
    return route.schemas === undefined ? one : withSchemas(one, route.schemas, componentName(spec, route));
  });
  const made = { all, main: all.find(({ path }) => path === main) ?? null };
  described.set(info, made);
  return made;
}

function componentName({ name, version }: FullModelRef, { path }: Route): string {
  const words = path.split('/').map((word) => word.replace(/[^\w.-]/g, '_'));
  return [name, version === FIRST_VERSION ? '' : version, ...words].filter((word) => word !== '').join('.');
}

/** `name`: the beginning of the names of its components. */
function withSchemas(
  route: DescribedRoute,
  { input: inputText, output: outputText }: NonNullable<Route['schemas']>,
  name: string,
): DescribedRoute {
  const input = inputText === undefined ? null : appSchema(inputText, `${name}.input`);
  const output = outputText === undefined ? null : appSchema(outputText, `${name}.output`);
  return {
    ...route,
    input: input?.schema ?? route.input,
    output: output?.schema ?? route.output,
    components: { ...input?.components, ...output?.components },
  };
}

/** An example may be 64 KB of JSON, which is read only once. */
const described = new WeakMap<LoadedInfo, DescribedRoutes>();

/** The only route of most apps. */
export const ASSUMED: DescribedRoute = {
  path: '/',
  kind: 'handler',
  takesOnlyJson: false,
  isNoCode: false,
  input: FREE,
  output: FREE,
};
const LOADING: DescribedRoutes = { all: [ASSUMED], main: ASSUMED };

/** `info`: null for a route whose input and output the app does not describe. */
function describeRoute({ path, kind, input }: Route, info: LoadedInfo | null): DescribedRoute {
  const takesOnlyJson = input === 'json';
  const route = { ...ASSUMED, path, kind, takesOnlyJson };
  if (info === null) return route;
  const example = parsed(info.example);
  const { signature } = info;
  const isNoCode = info.api === 'none';
  const schemas =
    signature === undefined
      ? { input: example === undefined ? FREE : inferSchema(example) }
      : {
          input: listedTensors(signature.inputs),
          output: isNoCode ? listedTensors(signature.outputs) : outputTensors(signature.outputs),
        };
  return {
    ...route,
    isNoCode,
    ...schemas,
    example: info.example.length <= MAX_SHOWN_CHARS ? example : undefined,
  };
}

/** Longer examples are not repeated at every path of their model. */
const MAX_SHOWN_CHARS = 1000;

/** Undefined for no JSON, which a worker of another kind might send. */
function parsed(example: string): unknown {
  try {
    return JSON.parse(example);
  } catch {
    return undefined;
  }
}

/** The parts of every description of a call. */
export function callParts(route: DescribedRoute) {
  const { kind, takesOnlyJson, isNoCode, input, output, example, components } = route;
  const answer = {
    'application/json': { schema: output },
    ...(output === FREE ? { '*/*': { schema: BYTES } } : {}),
  };
  return {
    requestBody: {
      required: takesOnlyJson || isNoCode,
      content: {
        'application/json': { schema: input, example },
        ...(takesOnlyJson ? {} : { '*/*': { schema: BYTES } }),
      },
    },
    responses: {
      200: kind === 'background' ? STARTED : { description: "The app's answer.", content: answer },
      202: ACCEPTED,
      ...(kind === 'handler' && !isNoCode ? OF_THE_APP : {}),
    },
    failures: CALL_FAILURES,
    ...(components === undefined ? {} : { schemas: components }),
  };
}

/** The routes of an app's code have other statuses too; their bodies are the app's, so no schema is given. */
const OF_THE_APP = { default: { description: 'A status of the app, with a body of its choice.' } };

function acceptedJob(description: string): object {
  const body = { started: { type: 'boolean', const: true }, jobId: TEXT, result: TEXT } as const;
  return {
    description,
    content: { 'application/json': { schema: objectOf(body, ['started']) } },
    headers: {
      [JOB_ID_HEADER]: { description: 'The id of the job.', schema: TEXT },
      [JOB_PAGE_HEADER]: { description: 'The path of its page.', schema: TEXT },
    },
  };
}

const STARTED = acceptedJob('The job is accepted; its page has its result.');
const ACCEPTED = acceptedJob('For a call with Prefer: respond-async: it is a job; its page has its result.');
