/** Describes the management API: what each of its paths takes and answers. */
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
  queryParameter('batch_size', 'Most calls that the model is given at once.', number(1, 1)),
  queryParameter('max_batch_delay', 'Longest wait of a call for others, in ms.', number(100, 0)),
  queryParameter('response_timeout', 'Longest run of a call, in seconds.', number(120, 1)),
];

const REGISTERED: readonly ApiParameter[] = [
  { ...queryParameter('url', 'The place of the model in the model store.', TEXT), required: true },
  queryParameter('model_name', 'The name of the model; else that of its folder or file.', TEXT),
  queryParameter('handler', 'Where its handler is: file, file:function or file:Class.', TEXT),
  queryParameter('runtime', 'What runs it, where it has a file for each.', {
    type: 'string',
    enum: RUNTIME_NAMES,
  }),
  ...OPTIONS,
  queryParameter('startup_timeout', 'Longest start of a worker, in seconds.', number(600, 0)),
  queryParameter('initial_workers', 'How many workers it begins with.', number(0)),
  queryParameter('synchronous', 'Whether the reply waits for these workers.', { ...FLAG, default: true }),
];

const SCALED: readonly ApiParameter[] = [
  queryParameter('min_worker', 'Fewer workers are made more.', number(1, 0)),
  queryParameter(
    'max_worker',
    'More workers are made fewer; as many as min_worker if left out.',
    number(undefined, 0),
  ),
  queryParameter(
    'timeout',
    'Seconds that calls of workers that go may take; -1: as long as they need.',
    number(-1),
  ),
  queryParameter('synchronous', 'Whether the reply waits for the workers.', { ...FLAG, default: false }),
  ...OPTIONS.map(({ schema: { type, format, minimum }, ...option }) => ({
    ...option,
    schema: { type, ...(format && { format }), ...(minimum !== undefined && { minimum }) },
  })),
];

const LISTED: readonly ApiParameter[] = [
  queryParameter('limit', 'Most models of a page.', { ...number(100, 1) }),
  queryParameter('next_page_token', 'Where the page begins: the nextPageToken of the one before.', TEXT),
  queryParameter('model_name_pattern', 'Whole names; * stands for anything, ? for one letter.', TEXT),
];

const STATUS: ApiSchema = { type: 'object', required: ['status'], properties: { status: TEXT } };
const said = (description: string): ApiReply => jsonReply(description, STATUS);

const WORKERS = {
  200: said('The workers are there.'),
  202: said('The workers are on their way.'),
  210: said('Some workers are still on their way.'),
};
const NO_MODEL = { 404: 'There is no such model, or no such version of it.' };
const FAILED = { 500: 'A worker cannot start.', 507: 'A worker cannot start for want of memory.' };

const WORKER: ApiSchema = {
  type: 'object',
  required: ['id', 'status', 'gpu', 'memoryUsage', 'restarts'],
  properties: {
    id: { type: 'string', description: 'The number of its place.' },
    startTime: { type: 'string', format: 'date-time', description: 'Left out without a process.' },
    status: { type: 'string', enum: ['READY', 'LOADING', 'UNLOADING', 'FAILED'] },
    gpu: FLAG,
    memoryUsage: { type: 'integer', format: 'int64', description: 'Resident bytes.' },
    pid: { type: 'integer', description: 'Left out without a process.' },
    restarts: { type: 'integer', description: 'Processes of this place that were started after a death.' },
    lastError: { type: 'string', description: 'How the process before ended, or why none is started.' },
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
    defaultVersion: { type: 'boolean', description: 'Its name alone means this version.' },
    status: { type: 'string', enum: ['Healthy', 'Partial Healthy', 'Unhealthy', 'UNLOADING'] },
    workers: { type: 'array', items: WORKER },
    metrics: {
      type: 'object',
      description: 'Of the last ten minutes.',
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
    replies: { 200: said('Nothing of it is left.') },
    errors: {
      403: 'It is the default version, and the model has others.',
      ...NO_MODEL,
      408: 'Its calls or workers have not ended in time; they go on to do so.',
      500: 'The server ends, and takes it along.',
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
          400: 'A parameter is wrong, or what was found is no model.',
          404: 'The model store has no such model.',
          409: 'There is such a model already.',
          ...FAILED,
        },
      }),
      requestBody: {
        description: 'The same parameters, in place of the query.',
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
    put: scaling('setAutoScale', 'Gives the default version of a model other workers or options.', [MODEL]),
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
    put: scaling('setVersionAutoScale', 'Gives one version of a model other workers or options.', [
      MODEL,
      VERSION,
    ]),
    delete: unregistering('unregisterModelVersion', 'Unregisters one version of a model.', [MODEL, VERSION]),
  },
  '/models/{model_name}/{model_version}/set-default': {
    put: operation('setDefault', 'Makes a version the one that the name alone means.', {
      parameters: [MODEL, VERSION],
      replies: { 200: said('Calls that name no version get this one from now on.') },
      errors: NO_MODEL,
    }),
  },
};
