/** Describes the management API: the parameters, bodies and replies of each path. */
import { RUNTIME_NAMES } from '../../../runtimes/index.js';
import {
  errorReplies,
  jsonReply,
  pathParameter,
  queryParameter,
  type ApiOperation,
  type ApiParameter,
  type ApiPaths,
  type ApiReply,
  type ApiSchema,
} from './describe-api.js';

const TEXT: ApiSchema = { type: 'string' };
const FLAG: ApiSchema = { type: 'boolean' };

function number(fallback?: number, minimum?: number): ApiSchema {
  return {
    type: 'integer',
    format: 'int32',
    ...(fallback !== undefined && { default: fallback }),
    ...(minimum !== undefined && { minimum }),
  };
}

const MODEL = pathParameter('model_name', 'The name of the model.');
const VERSION = pathParameter('model_version', 'The version of the model.');

const OPTIONS: readonly ApiParameter[] = [
  queryParameter('batch_size', 'Maximum number of calls in a batch.', number(1, 1)),
  queryParameter(
    'max_batch_delay',
    'Maximum time that a call waits for a batch to fill, in ms.',
    number(100, 0),
  ),
  queryParameter('response_timeout', 'Maximum run time of a call, in seconds.', number(120, 1)),
  queryParameter(
    'idle_timeout',
    'Lets the model scale itself: time without need of a worker after which it ends, in seconds.',
    number(undefined, 1),
  ),
  queryParameter(
    'target_wait',
    'Wait of a call, in ms, beyond which a model that scales itself starts a worker.',
    number(100, 1),
  ),
  queryParameter('standby', 'Number of loaded workers beyond those that take calls.', number(0, 0)),
];

const REGISTERED: readonly ApiParameter[] = [
  { ...queryParameter('url', 'The path of the model in the model store.', TEXT), required: true },
  queryParameter('model_name', 'The name of the model; default: the name of its folder or file.', TEXT),
  queryParameter('handler', 'The handler: file, file:function or file:Class.', TEXT),
  queryParameter('runtime', 'The runtime, for a model that has a file for each.', {
    type: 'string',
    enum: RUNTIME_NAMES,
  }),
  ...OPTIONS,
  queryParameter('startup_timeout', 'Maximum start time of a worker, in seconds.', number(600, 0)),
  queryParameter('min_worker', 'Lets the model scale itself: its least workers.', number(undefined, 0)),
  queryParameter('max_worker', 'Lets the model scale itself: its most workers.', number(undefined, 1)),
  queryParameter('initial_workers', 'Number of workers at the start.', number(0)),
  queryParameter('synchronous', 'Whether the reply waits for these workers.', { ...FLAG, default: true }),
];

const SCALED: readonly ApiParameter[] = [
  queryParameter(
    'min_worker',
    'Minimum number of workers; more are started if there are fewer.',
    number(1, 0),
  ),
  queryParameter(
    'max_worker',
    'Maximum number of workers; default: min_worker. Some are stopped if there are more.',
    number(undefined, 0),
  ),
  queryParameter(
    'timeout',
    'Seconds for the calls of workers that are being stopped; -1: no limit.',
    number(-1),
  ),
  queryParameter('synchronous', 'Whether the reply waits for the workers.', { ...FLAG, default: false }),
  ...OPTIONS.map(({ schema: { type, format, minimum }, ...option }) => ({
    ...option,
    schema: { type, ...(format && { format }), ...(minimum !== undefined && { minimum }) },
  })),
];

const LISTED: readonly ApiParameter[] = [
  queryParameter('limit', 'Maximum number of models on a page.', { ...number(100, 1) }),
  queryParameter('next_page_token', 'The start of the page: the nextPageToken of the previous page.', TEXT),
  queryParameter('model_name_pattern', 'Pattern for whole names; * matches any text, ? one character.', TEXT),
];

const STATUS: ApiSchema = { type: 'object', required: ['status'], properties: { status: TEXT } };
const statusReply = (description: string): ApiReply => jsonReply(description, STATUS);

const WORKERS = {
  200: statusReply('The workers are ready.'),
  202: statusReply('The workers are starting or stopping.'),
  210: statusReply('Some workers are still starting or stopping.'),
};
const NO_MODEL = { 404: 'There is no such model, or no such version of it.' };
const FAILED = {
  500: 'A worker cannot start.',
  507: 'A worker cannot start because there is not enough memory.',
};

const WORKER: ApiSchema = {
  type: 'object',
  required: ['id', 'status', 'gpu', 'memoryUsage', 'restarts'],
  properties: {
    id: { type: 'string', description: 'The number of its slot.' },
    startTime: { type: 'string', format: 'date-time', description: 'Left out without a process.' },
    status: { type: 'string', enum: ['READY', 'LOADING', 'UNLOADING', 'FAILED'] },
    gpu: FLAG,
    memoryUsage: { type: 'integer', format: 'int64', description: 'Resident bytes.' },
    pid: { type: 'integer', description: 'Left out without a process.' },
    restarts: { type: 'integer', description: 'Number of restarts after the process of this slot died.' },
    lastError: {
      type: 'string',
      description: 'The end of the previous process, or the reason why none is started.',
    },
  },
};

const DESCRIBED: ApiSchema = {
  type: 'object',
  required: ['modelName', 'modelVersion', 'modelUrl', 'minWorkers', 'maxWorkers', 'status', 'workers'],
  properties: {
    modelName: TEXT,
    modelVersion: TEXT,
    modelUrl: TEXT,
    runtime: TEXT,
    minWorkers: number(),
    maxWorkers: number(),
    batchSize: number(),
    maxBatchDelay: { ...number(), description: 'In ms.' },
    responseTimeout: { ...number(), description: 'In seconds.' },
    startupTimeout: { ...number(), description: 'In seconds.' },
    loadedAtStartup: FLAG,
    defaultVersion: { type: 'boolean', description: 'Calls that name no version get this version.' },
    status: { type: 'string', enum: ['Healthy', 'Partial Healthy', 'Unhealthy', 'UNLOADING'] },
    workers: { type: 'array', items: WORKER },
    metrics: {
      type: 'object',
      description: 'Numbers of the last ten minutes.',
      properties: { rejectedRequests: number(), waitingQueueSize: number(), requests: number() },
    },
    jobQueueStatus: {
      type: 'object',
      properties: { remainingCapacity: number(), pendingRequests: number() },
    },
  },
};

const LIST: ApiSchema = {
  type: 'object',
  required: ['models'],
  properties: {
    nextPageToken: { type: 'string', description: 'Left out on the last page.' },
    models: {
      type: 'array',
      items: { type: 'object', properties: { modelName: TEXT, modelUrl: TEXT } },
    },
  },
};

interface Described {
  readonly parameters: readonly ApiParameter[];
  readonly replies: Readonly<Record<number, ApiReply>>;
  readonly errors: Readonly<Record<number, string>>;
}

function operation(operationId: string, description: string, given: Described): ApiOperation {
  const { parameters, replies, errors } = given;
  return { operationId, description, parameters, responses: { ...replies, ...errorReplies(errors) } };
}

function describing(operationId: string, what: string, path: readonly ApiParameter[]): ApiOperation {
  const replies = { 200: jsonReply('The model and its workers.', DESCRIBED) };
  return operation(operationId, what, { parameters: path, replies, errors: NO_MODEL });
}

function scaling(operationId: string, what: string, path: readonly ApiParameter[]): ApiOperation {
  return operation(operationId, what, {
    parameters: [...path, ...SCALED],
    replies: WORKERS,
    errors: { 400: 'A parameter is wrong.', ...NO_MODEL, ...FAILED },
  });
}

function unregistering(operationId: string, what: string, path: readonly ApiParameter[]): ApiOperation {
  return operation(operationId, what, {
    parameters: path,
    replies: { 200: statusReply('The model is unregistered.') },
    errors: {
      403: 'It is the default version, and the model has other versions.',
      ...NO_MODEL,
      408: 'Its calls or workers have not ended in time; they are still ending.',
      500: 'The server is shutting down.',
    },
  });
}

export const MANAGEMENT_API: ApiPaths = {
  '/': {
    options: {
      operationId: 'apiDescription',
      description: 'Describes this listener.',
      responses: { 200: jsonReply('This description, as OpenAPI 3.0.1.', { type: 'object' }) },
    },
  },
  '/models': {
    get: operation('listModels', 'Lists the models.', {
      parameters: LISTED,
      replies: { 200: jsonReply('A page of models.', LIST) },
      errors: {},
    }),
    post: {
      ...operation('registerModel', 'Registers a model of the model store.', {
        parameters: REGISTERED,
        replies: WORKERS,
        errors: {
          400: 'A parameter is wrong, or the file or folder is not a model.',
          404: 'The model store has no such model.',
          409: 'A model with this name and version is registered already.',
          ...FAILED,
        },
      }),
      requestBody: {
        description: 'The same parameters, instead of a query.',
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['url'],
              properties: Object.fromEntries(REGISTERED.map(({ name, schema }) => [name, schema])),
            },
          },
        },
      },
    },
  },
  '/models/{model_name}': {
    get: describing('describeModel', 'Describes the default version of a model.', [MODEL]),
    put: scaling('setAutoScale', 'Changes the workers or options of the default version of a model.', [
      MODEL,
    ]),
    delete: unregistering('unregisterModel', 'Unregisters the default version of a model.', [MODEL]),
  },
  '/models/{model_name}/all': {
    get: operation('describeAllVersions', 'Describes every version of a model.', {
      parameters: [MODEL],
      replies: { 200: jsonReply('The versions.', { type: 'array', items: DESCRIBED }) },
      errors: NO_MODEL,
    }),
  },
  '/models/{model_name}/{model_version}': {
    get: describing('describeModelVersion', 'Describes one version of a model.', [MODEL, VERSION]),
    put: scaling('setVersionAutoScale', 'Changes the workers or options of one version of a model.', [
      MODEL,
      VERSION,
    ]),
    delete: unregistering('unregisterModelVersion', 'Unregisters one version of a model.', [MODEL, VERSION]),
  },
  '/models/{model_name}/{model_version}/workers/{worker}/restart': {
    put: operation('restartWorker', 'Replaces one worker, which finishes the calls that it has begun.', {
      parameters: [
        MODEL,
        VERSION,
        pathParameter('worker', 'The number of the worker.'),
        queryParameter('synchronous', 'Whether the reply waits for the next worker.', {
          ...FLAG,
          default: false,
        }),
      ],
      replies: {
        200: statusReply('The next worker is ready, and the one before has ended.'),
        202: statusReply('The worker is being replaced.'),
        210: statusReply('The next worker is still starting, or the one before has not ended.'),
      },
      errors: { 404: 'There is no such model, version or worker.', ...FAILED },
    }),
  },
  '/models/{model_name}/{model_version}/set-default': {
    put: operation('setDefault', 'Makes a version the default version of its model.', {
      parameters: [MODEL, VERSION],
      replies: { 200: statusReply('Calls that name no version now get this version.') },
      errors: NO_MODEL,
    }),
  },
};
