/**
 * KServe's first protocol, and Vertex AI's, which has the same bodies at paths that the platform names: a list of instances,
 * each of which is a call of the app. The worker reads the body, runs the app and writes the answer.
 */
import { textFailure } from '../../answer/house-error.js';
import { chooseRoute } from '../../call/find-route.js';
import { defaultModel, findModel } from '../../call/find-model.js';
import { pathTable } from '../../call/path-table.js';
import { CALL_FAILURES, TEXT_ERROR } from '../../openapi/errors.js';
import {
  operationIdOf,
  operationsOf,
  encodedPath,
  type DescribedOperation,
} from '../../openapi/operation.js';
import { describedRoutes } from '../../openapi/routes.js';
import type { Model } from '../../../models/model.js';
import { isRead } from '../../socket/request-facts.js';
import { callByPost, writeReadiness, type CallPlan, type Dialect, type Operation } from '../dialect.js';
import paths from './paths.json' with { type: 'json' };

const PREDICT = '/v1/models/{model}:predict';
const NAME = '{model}';
const FORMAT = 'predict';
const find = pathTable({ [PREDICT]: null });

const STYLE: Pick<Dialect, 'fail' | 'errorBody'> = {
  fail: (error, _requestId, context) => textFailure(error, context),
  errorBody: TEXT_ERROR,
};

/** Instances of one body run in one worker: together, as far as the app takes batches. */
function planOf(model: Model): CallPlan {
  return {
    target: { model, route: chooseRoute(model.spec.name) },
    format: FORMAT,
    answer: FORMAT,
    dialectParams: ({ options }) => ({ batch: String(options.batchSize) }),
  };
}

export const kserveV1: Dialect = {
  name: 'kserve-v1',
  ...STYLE,
  paths: new Map([[PREDICT, 'POST']]),
  claim(context, models) {
    const name = find(context.path)?.params['model'];
    if (name === undefined) return null;
    return callByPost(context, () =>
      planOf(findModel(context, models, { name: name.replaceAll('%2F', '/') })),
    );
  },
  owns: (path) => /^\/v1\/models\/.*:predict$/.test(path),
  callPaths: ({ model: { name }, route, isMain, isDefaultVersion }) =>
    isMain && isDefaultVersion && route.kind === 'handler' ? [{ path: PREDICT.replace(NAME, name) }] : [],
  describe: ({ models, options: { openapiAll } }) =>
    models
      .describe()
      .filter(({ model, isDefault, isLeaving }) => {
        const isMeant = openapiAll || model.info?.signature !== undefined;
        return isMeant && isDefault && !isLeaving;
      })
      .flatMap(({ model }) => describedCall(model, PREDICT.replace(NAME, model.spec.name), 'V1')),
};

/** The paths of Vertex AI, which come before all others: the platform knows no other ones. */
export function vertex({ health, predict }: { health: string | null; predict: string | null }): Dialect {
  return {
    name: 'vertex',
    ...STYLE,
    paths: new Map(),
    claim(context, models): Operation | null {
      const { path, request } = context;
      if (path === health && isRead(request)) return HEALTH;
      if (path !== predict || request.method !== 'POST') return null;
      return callByPost(context, () => planOf(defaultModel(models)));
    },
    describe: ({ models }) =>
      predict === null || models.default === null ? [] : describedCall(models.default, predict, 'Vertex'),
  };
}

const HEALTH: Operation = {
  auth: 'none',
  counts: false,
  methods: 'GET, HEAD',
  act: { write: (ctx, { backend }) => writeReadiness(ctx, backend.readiness()) },
};

/** None for a model without a route that takes such a call. */
function describedCall(model: Model, path: string, family: string): DescribedOperation[] {
  const { main } = describedRoutes(model);
  if (main?.kind !== 'handler') return [];
  const { name } = model.spec;
  const { input, output, components = {} } = main;
  const inputs = { type: 'array', minItems: 1, items: input };
  return operationsOf(paths, { inputs, outputs: { type: 'array', items: output } }).map((call) => ({
    ...call,
    path: encodedPath(path),
    operationId: operationIdOf('call', name, '', family),
    description: `${call.description} The model is ${name}.`,
    failures: CALL_FAILURES,
    schemas: components,
  }));
}
