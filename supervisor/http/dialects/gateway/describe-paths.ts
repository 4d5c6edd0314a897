/** Describes the gateway's paths as its clients write them, with a slash at the end; people may leave it out. */
import { describesClientsOf } from '../../openapi/described-clients.js';
import { describedRoutes } from '../../openapi/model-routes.js';
import {
  FREE,
  TEXT,
  jsonReply,
  objectOf,
  type DescribedOperation,
  type DescribedServer,
  type JsonSchema,
} from '../../openapi/operation.js';
import { GATEWAY_ROUTE } from './model-key.js';

const FLAG: JsonSchema = { type: 'boolean' };

/** The fields of every reply; failures have a `code`, and a message with the word "error". */
const REPLY = { id: TEXT, message: TEXT, created: { type: 'integer' }, apiVersion: TEXT } as const;

/** The fields of every request. */
const REQUEST = {
  id: TEXT,
  apiKey: { ...TEXT, description: 'The key, unless a header has it.' },
  created: { type: 'number' },
} as const;

function operation(
  path: string,
  operationId: string,
  description: string,
  fields: Readonly<Record<string, JsonSchema>>,
  results: Readonly<Record<string, JsonSchema>>,
): DescribedOperation {
  const body = objectOf({ ...REQUEST, ...fields }, []);
  const reply = objectOf({ ...REPLY, ...results, code: TEXT }, Object.keys(REPLY));
  return {
    path,
    method: 'post',
    operationId,
    description,
    auth: 'body',
    requestBody: { required: true, content: { 'application/json': { schema: body } } },
    responses: { 200: jsonReply('The reply, also to a failure.', reply) },
  };
}

/** The models' route `/` may differ in its inputs, so they are described if only the default model can be called. */
export function describePaths(server: DescribedServer): DescribedOperation[] {
  if (!describesClientsOf(server, 'banana')) return [];
  const { models } = server;
  const { default: model } = models;
  const isOnly = models.describe().every(({ model: other, isDefault }) => !isDefault || other === model);
  const route = isOnly && model !== null ? describedRoutes(model).all.find(isCalled) : undefined;
  const { input = FREE, output = FREE } = route ?? {};
  const start = {
    modelInputs: input,
    modelKey: {
      ...TEXT,
      description: 'The name of the model; without it, or with one model, the default model.',
    },
  };
  const outputs: JsonSchema = { type: 'array', items: output };
  const started = { callID: TEXT, finished: FLAG };
  const ended = { ...started, modelOutputs: outputs };
  const startOnly = { ...FLAG, description: 'The reply does not wait for the result.' };
  const check = { callID: TEXT, longPoll: { ...FLAG, description: 'Waits up to 50 s for the result.' } };
  return [
    operation('/start/v2/', 'startV2', 'Starts a call of the model.', start, started),
    ...['v3', 'v4'].map((version) =>
      operation(
        `/start/${version}/`,
        `start${version.toUpperCase()}`,
        'Starts a call of the model, and waits up to 50 s for its result.',
        { ...start, startOnly },
        ended,
      ),
    ),
    ...['v2', 'v3', 'v4'].map((version) =>
      operation(
        `/check/${version}/`,
        `check${version.toUpperCase()}`,
        'Returns the result of a call that was started.',
        check,
        { modelOutputs: outputs },
      ),
    ),
    operation(
      '/feedback/v2/',
      'sendFeedbackV2',
      'Logs feedback on a call.',
      { callID: TEXT, feedback: FREE },
      {},
    ),
  ];
}

function isCalled({ path, kind }: { readonly path: string; readonly kind: string }): boolean {
  return path === GATEWAY_ROUTE && kind !== 'websocket';
}
