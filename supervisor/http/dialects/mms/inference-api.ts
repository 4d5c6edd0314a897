/** Describes the inference API: the parameters, bodies and replies of each path. */
import {
  errorReplies,
  jsonReply,
  pathParameter,
  type ApiContent,
  type ApiOperation,
  type ApiPaths,
} from './describe-api.js';

const BYTES = { type: 'string', format: 'binary' } as const;
const ANY_BODY: ApiContent = { '*/*': { schema: BYTES } };

const MODEL = pathParameter('model_name', 'The name of the model.');
const VERSION = pathParameter('model_version', 'The version of the model; without it, the default version.');

const ANSWER = { 200: { description: 'The answer of the model, as bytes.', content: ANY_BODY } };
const ERRORS = errorReplies({
  404: 'There is no such model, or no such version of it.',
  500: 'The worker died, or the model failed with a status of its own choice.',
  503: 'The model failed, its queue is full, or no worker is available.',
  504: 'The model took too long.',
  507: 'There was not enough memory.',
});
const BAD_REQUEST = errorReplies({ 400: 'The request has no model_name, or its body is malformed.' });
const MALFORMED = errorReplies({ 400: 'The body is malformed.' });

const DESCRIPTION = jsonReply('This description, as OpenAPI 3.0.1.', { type: 'object' });

function call(operationId: string, description: string, more: Partial<ApiOperation> = {}): ApiOperation {
  return {
    operationId,
    description,
    requestBody: { description: 'The input of the model.', content: ANY_BODY },
    responses: { ...ANSWER, ...MALFORMED, ...ERRORS },
    ...more,
  };
}

function describing(
  operationId: string,
  description: string,
  more: Partial<ApiOperation> = {},
): ApiOperation {
  return { operationId, description, responses: { 200: DESCRIPTION }, ...more };
}

const UNKNOWN = errorReplies({ 404: 'There is no such model, or no such version of it.' });

export const INFERENCE_API: ApiPaths = {
  '/': { options: describing('apiDescription', 'Describes this listener.') },
  '/{model_name}/predict': {
    post: call('predict', 'Calls a model. Use /predictions/{model_name}.', {
      deprecated: true,
      parameters: [MODEL],
    }),
  },
  '/ping': {
    get: {
      operationId: 'ping',
      description: 'Reports whether every model has the workers that it should have.',
      responses: {
        200: jsonReply('Healthy, or Partial Healthy.', {
          type: 'object',
          required: ['status'],
          properties: { status: { type: 'string', enum: ['Healthy', 'Partial Healthy', 'Unhealthy'] } },
        }),
        503: jsonReply('Unhealthy: no model has a worker.', {
          type: 'object',
          required: ['status'],
          properties: { status: { type: 'string', enum: ['Unhealthy'] } },
        }),
      },
    },
  },
  '/predictions/{model_name}': {
    post: call('predictions', 'Calls the default version of a model.', { parameters: [MODEL] }),
    options: describing('predictionsApi', 'Describes how this model is called.', {
      parameters: [MODEL],
      responses: { 200: DESCRIPTION, ...UNKNOWN },
    }),
  },
  '/predictions/{model_name}/{model_version}': {
    post: call('versionPredictions', 'Calls one version of a model.', { parameters: [MODEL, VERSION] }),
    options: describing('versionPredictionsApi', 'Describes how this version of a model is called.', {
      parameters: [MODEL, VERSION],
      responses: { 200: DESCRIPTION, ...UNKNOWN },
    }),
  },
  '/api-description': {
    get: describing('apiDescriptionPage', 'Describes this listener. Use OPTIONS /.', { deprecated: true }),
  },
  '/invocations': {
    post: call('invocations', 'Calls the model given as model_name, in the query or in a form.', {
      parameters: [
        {
          in: 'query',
          name: 'model_name',
          description: 'The model. Optional if the server was started with a single model.',
          schema: { type: 'string' },
        },
      ],
      requestBody: {
        description: 'The input of the model. In a form, model_name must be in the first 64 KiB.',
        content: {
          'multipart/form-data': {
            schema: {
              type: 'object',
              properties: { model_name: { type: 'string' }, data: BYTES },
            },
          },
          ...ANY_BODY,
        },
      },
      responses: { ...ANSWER, ...BAD_REQUEST, ...ERRORS },
    }),
  },
  '/models/{model_name}/invoke': {
    post: call('invoke', 'Calls the default version of a model.', { parameters: [MODEL] }),
  },
};

/** Describes the calls of one model; empty `version`: the default version. */
export function modelApi(name: string, version: string): ApiPaths {
  const path = ['predictions', name, version].filter((segment) => segment !== '').map(encodeURIComponent);
  return { [`/${path.join('/')}`]: { post: call('predictions', `Calls the model ${name}.`) } };
}
