/** Describes the protocol's paths for the OpenAPI document: pages by the names of models, and a call for each version. */
import { ServeError } from '../../../../protocol/errors.js';
import type { LoadedInfo } from '../../../../protocol/wire/messages.js';
import { CALL_FAILURES, NO_MODEL } from '../../openapi/call-failures.js';
import { describedRoutes } from '../../openapi/model-routes.js';
import { operationIdOf } from '../../openapi/operation-id.js';
import {
  BYTES,
  FREE,
  TEXT,
  jsonReply,
  objectOf,
  writtenPath,
  type ApiBody,
  type ApiParameter,
  type ApiReplies,
  type DescribedOperation,
  type DescribedServer,
  type JsonSchema,
  type NamedSchema,
} from '../../openapi/operation.js';
import { DATATYPE } from '../../openapi/tensor-schema.js';

export const OPEN_INFERENCE_ERROR: NamedSchema = {
  name: 'OpenInferenceError',
  schema: objectOf({ error: TEXT }),
};

const FLAG: JsonSchema = { type: 'boolean' };
const COUNT: JsonSchema = { type: 'integer' };
const SHAPE: JsonSchema = { type: 'array', items: COUNT };
const PARAMETERS: JsonSchema = { type: 'object' };

const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items });

const DESCRIBED_TENSOR = objectOf({ name: TEXT, datatype: DATATYPE, shape: SHAPE });

const TENSOR = objectOf(
  {
    name: TEXT,
    datatype: DATATYPE,
    shape: SHAPE,
    parameters: PARAMETERS,
    data: { ...listOf(FREE), description: 'Nested or flat; left out if the bytes follow the JSON.' },
  },
  ['name', 'datatype', 'shape'],
);

const REQUEST = objectOf(
  {
    id: TEXT,
    parameters: PARAMETERS,
    inputs: listOf(TENSOR),
    outputs: listOf(objectOf({ name: TEXT, parameters: PARAMETERS }, ['name'])),
  },
  ['inputs'],
);

const ANSWER = objectOf({ model_name: TEXT, model_version: TEXT, id: TEXT, outputs: listOf(TENSOR) }, [
  'model_name',
  'model_version',
  'outputs',
]);

/** JSON, or JSON with the bytes of tensors behind it (the header `Inference-Header-Content-Length`). */
const contentOf = (schema: JsonSchema): ApiBody['content'] => ({
  'application/json': { schema },
  'application/octet-stream': { schema: BYTES },
});

const NAMES: Readonly<Record<string, string>> = { model: 'The name of the model.', version: 'Its version.' };

interface Page {
  readonly path: string;
  /** Verb and object of the operation's name. */
  readonly id: string;
  readonly method?: 'get' | 'post';
  readonly auth: DescribedOperation['auth'];
  readonly description: string;
  readonly schema: JsonSchema;
  /** The body of a 400, if that is an answer too. */
  readonly notReady?: JsonSchema;
  readonly requestBody?: ApiBody;
  readonly failures?: readonly ServeError[];
}

function operationOf({
  path,
  id,
  method = 'get',
  schema,
  notReady,
  failures,
  ...page
}: Page): DescribedOperation {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']): ApiParameter => {
    return { name, in: 'path', required: true, description: NAMES[name] ?? '', schema: TEXT };
  });
  return {
    ...page,
    path,
    method,
    operationId: `${id}V2`,
    ...(parameters.length > 0 && { parameters }),
    responses: {
      200: jsonReply('The answer.', schema),
      ...(notReady !== undefined && { 400: jsonReply('Not ready.', notReady) }),
    },
    failures: failures ?? (parameters.length > 0 ? NO_MODEL : []),
  };
}

const NOT_READY = [new ServeError('SERVE_NOT_READY')];
const STATISTICS = objectOf({ model_stats: listOf({ type: 'object' }) });

const OF_SERVER: readonly Page[] = [
  {
    path: '/v2',
    id: 'getServer',
    auth: 'call',
    description: 'Describes the server.',
    schema: objectOf({ name: TEXT, version: TEXT, extensions: listOf(TEXT) }),
  },
  {
    path: '/v2/health/live',
    id: 'getLiveness',
    auth: 'none',
    description: 'Whether the server answers.',
    schema: objectOf({ live: FLAG }),
  },
  {
    path: '/v2/health/ready',
    id: 'getReadiness',
    auth: 'none',
    description: 'Whether the server is ready for calls; 400 if it is not.',
    schema: objectOf({ live: FLAG, ready: FLAG }),
    notReady: objectOf({ live: FLAG, ready: FLAG, error: TEXT }),
  },
  {
    path: '/v2/models',
    id: 'listModels',
    auth: 'call',
    description: 'Lists the models.',
    schema: objectOf({ models: listOf(TEXT) }),
  },
  {
    path: '/v2/models/stats',
    id: 'getStatistics',
    auth: 'call',
    description: 'Counts the calls of all models.',
    schema: STATISTICS,
  },
];

const OF_MODEL: readonly Page[] = [
  {
    path: '',
    id: '',
    auth: 'call',
    description: "Describes the model's inputs and outputs; waits while it is loading.",
    schema: objectOf({
      name: TEXT,
      versions: listOf(TEXT),
      platform: TEXT,
      inputs: listOf(DESCRIBED_TENSOR),
      outputs: listOf(DESCRIBED_TENSOR),
    }),
    failures: [...NO_MODEL, ...NOT_READY],
  },
  {
    path: '/ready',
    id: 'Readiness',
    auth: 'none',
    description: 'Whether the model is ready for calls; 400 if it is not.',
    schema: objectOf({ name: TEXT, ready: FLAG }),
    notReady: objectOf({ name: TEXT, ready: FLAG, error: TEXT }),
  },
  {
    path: '/config',
    id: 'Config',
    auth: 'call',
    description: "The model's configuration in Triton's words; waits while it is loading.",
    schema: objectOf({ name: TEXT, platform: TEXT, max_batch_size: COUNT }),
    failures: [...NO_MODEL, ...NOT_READY],
  },
  {
    path: '/stats',
    id: 'Statistics',
    auth: 'call',
    description: 'Counts the calls of the model.',
    schema: STATISTICS,
  },
];

const SETTINGS: ApiBody = { content: { 'application/json': { schema: { type: 'object' } } } };
const CHANGE = { auth: 'management', method: 'post', requestBody: SETTINGS } as const;
const REPOSITORY: readonly Page[] = [
  {
    ...CHANGE,
    path: '/v2/repository/index',
    id: 'listRepository',
    description: 'Lists the models that are registered, and those of the model store.',
    schema: listOf(objectOf({ name: TEXT, version: TEXT, state: TEXT, reason: TEXT }, ['name', 'state'])),
  },
  {
    ...CHANGE,
    path: '/v2/repository/models/{model}/load',
    id: 'loadModel',
    description: 'Loads the model as the model store has it now; answers when it is ready.',
    schema: objectOf({ name: TEXT, load: FLAG }),
    failures: [new ServeError('SERVE_BAD_REQUEST'), ...NO_MODEL],
  },
  {
    ...CHANGE,
    path: '/v2/repository/models/{model}/unload',
    id: 'unloadModel',
    description: 'Ends all versions of the model; answers when they have ended.',
    schema: objectOf({ name: TEXT, unload: FLAG }),
  },
];

const MODEL = '/v2/models/{model}';
const BASES = [
  [MODEL, 'getModel'],
  [`${MODEL}/versions/{version}`, 'getModelVersion'],
] as const;

/** `managesModels`: with the paths of the model repository. */
export function* describeOpenInference(
  { models, options: { openapiAll } }: DescribedServer,
  managesModels: boolean,
): Generator<DescribedOperation> {
  const described = models.describe();
  const takesTensors = ({ info }: { readonly info: LoadedInfo | null }): boolean =>
    openapiAll || info?.signature !== undefined;
  if (!openapiAll && !described.some(({ model }) => takesTensors(model))) return;
  yield* OF_SERVER.map(operationOf);
  for (const [base, id] of BASES)
    yield* OF_MODEL.map((page) => operationOf({ ...page, path: base + page.path, id: id + page.id }));
  if (managesModels) yield* REPOSITORY.map(operationOf);
  for (const { model, isDefault, isLeaving } of described) {
    const { name, version } = model.spec;
    if (isLeaving || !takesTensors(model) || describedRoutes(model).main?.kind !== 'handler') continue;
    if (isDefault) yield callOf(name, '', `/v2/models/${name}/infer`);
    yield callOf(name, `Version${version}`, `/v2/models/${name}/versions/${version}/infer`);
  }
}

const ANSWERED: ApiReplies = {
  200: { description: 'The outputs that were wanted.', content: contentOf(ANSWER) },
};

/** `version`: empty where none is named. */
function callOf(name: string, version: string, path: string): DescribedOperation {
  return {
    path: writtenPath(path),
    method: 'post',
    operationId: operationIdOf('call', name, version, 'V2'),
    description: `Calls the model ${name} with tensors.`,
    auth: 'call',
    requestBody: { required: true, content: contentOf(REQUEST) },
    responses: ANSWERED,
    failures: CALL_FAILURES,
  };
}
