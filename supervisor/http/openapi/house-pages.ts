/** Describes the pages of the house: health, readiness, status. */
import { NO_MODEL } from './call-failures.js';
import {
  TEXT,
  jsonReply,
  objectOf,
  type ApiReplies,
  type DescribedOperation,
  type JsonSchema,
} from './operation.js';

const STATES: JsonSchema = {
  ...TEXT,
  enum: ['starting', 'ready', 'idle', 'unhealthy', 'failing', 'draining', 'unloaded'],
};

const READINESS: JsonSchema = {
  type: 'object',
  required: ['state'],
  properties: {
    state: STATES,
    model: TEXT,
    reason: { ...TEXT, description: 'Why no worker can start, and what to do.' },
    notReady: {
      type: 'object',
      additionalProperties: true,
      description: 'The state of each model that is not ready.',
    },
    idle: {
      type: 'array',
      items: TEXT,
      description: 'Models without a worker, because none was needed; they count as ready.',
    },
    jobs: { ...TEXT, const: 'unavailable', description: 'There while the store of jobs fails.' },
  },
};

const HEALTH = objectOf({
  state: { ...TEXT, enum: ['healthy', 'starting', 'unhealthy', 'failing', 'draining', 'unloaded'] },
  gpu: { type: 'boolean' },
});

const STATUS: JsonSchema = {
  type: 'object',
  required: ['state', 'version', 'models'],
  properties: {
    state: STATES,
    version: TEXT,
    models: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name', 'version', 'state'],
        properties: { name: TEXT, version: TEXT, state: TEXT },
        additionalProperties: true,
      },
    },
  },
  additionalProperties: true,
};

/** Replies of a page that is also there, with 503, while no worker is ready. */
function whetherReady(schema: JsonSchema): ApiReplies {
  return { 200: jsonReply('Ready.', schema), 503: jsonReply('Not ready.', schema) };
}

function page(
  path: string,
  operationId: string,
  description: string,
  responses: ApiReplies,
): DescribedOperation {
  return { path, method: 'get', operationId, description, auth: 'none', responses };
}

export const HOUSE_PAGES: readonly DescribedOperation[] = [
  page(
    '/healthcheck',
    'getHealth',
    'Tells whether a worker is ready, as the Banana platform asks it.',
    whetherReady(HEALTH),
  ),
  page('/livez', 'getLiveness', 'Tells that the server can answer.', {
    200: jsonReply('Alive.', objectOf({ state: { ...TEXT, const: 'alive' } })),
  }),
  page('/readyz', 'getReadiness', 'Tells whether the server should get calls.', whetherReady(READINESS)),
  {
    ...page(
      '/readyz/{model}',
      'getModelReadiness',
      'Tells whether a model has a ready worker.',
      whetherReady(READINESS),
    ),
    parameters: [
      { name: 'model', in: 'path', required: true, description: 'The name of the model.', schema: TEXT },
    ],
    failures: NO_MODEL,
  },
  {
    ...page('/status', 'getStatus', 'Describes the server, its models and their workers.', {
      200: jsonReply('The status.', STATUS),
    }),
    auth: 'call',
  },
];
