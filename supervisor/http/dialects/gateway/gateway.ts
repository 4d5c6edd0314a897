/**
 * The gateway dialect: the API that the Banana platform had for its clients of majors 2 to 4. A client starts a call,
 * then polls until the call has ended.
 *
 * 1. A start becomes a kept job of the route `/` of the model that `modelKey` names (`requests.ts`), whether its client
 *    stays connected or not. The model's input stays bytes.
 * 2. A check and feedback start nothing and take no place in a queue.
 * 3. A client that waits for the result, in the start itself or in a check, gets an answer when the job ends, or after
 *    a time the answer that it is still running (`whenEnded` of `answer/job-answers.ts`).
 *
 * The key is in the body. Every reply is HTTP 200, failures included (`reply.ts`).
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { Models } from '../../../models/models.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import { houseFailure } from '../../answer/house-error.js';
import {
  describesClientsOf,
  operationsOf,
  type DescribedOperation,
  type DescribedServer,
} from '../../openapi/operation.js';
import { describedRoutes } from '../../openapi/routes.js';
import { FREE } from '../../openapi/schemas.js';
import { wrongMethod, type Dialect, type Operation } from '../dialect.js';
import paths from './paths.json' with { type: 'json' };
import { failureReply } from './reply.js';
import { GATEWAY_ROUTE, answerCheck, answerFeedback, startPlan } from './requests.js';

const start = (models: Models): Operation['act'] => startPlan(models, false);
const startAndWait = (models: Models): Operation['act'] => startPlan(models, true);
const check = (): Operation['act'] => ({ answer: answerCheck });
const feedback = (): Operation['act'] => ({ answer: answerFeedback });

/**
 * The paths of the platform's gateway, as Banana's first clients call them (v3 is the path of Go's client and of
 * Python's 3.0.1). The clients write a slash at the end; people do not.
 */
const PATHS = new Map(
  [
    ['/start/v2', start] as const,
    ['/start/v3', startAndWait] as const,
    ['/start/v4', startAndWait] as const,
    ['/check/v2', check] as const,
    ['/check/v3', check] as const,
    ['/check/v4', check] as const,
    ['/feedback/v2', feedback] as const,
  ].flatMap(([path, act]) => [
    [path, act],
    [`${path}/`, act],
  ]),
);

const METHODS = 'POST';

export const gateway: Dialect = {
  name: 'gateway',
  ...BANANA_CLIENTS,
  paths: new Map([...PATHS.keys()].map((path) => [path, METHODS])),
  describe: describePaths,

  claim(context, models) {
    const actOf = PATHS.get(context.path);
    if (actOf === undefined) return null;
    if (context.request.method !== METHODS) return wrongMethod(context, METHODS);
    return {
      auth: 'body',
      counts: actOf === start || actOf === startAndWait,
      methods: METHODS,
      act: actOf(models),
    };
  },

  /** The gateway's clients only send `POST`; any other request gets an error in the house dialect. */
  fail(error, requestId, context) {
    if (context?.request.method !== 'POST') return houseFailure(error, requestId, context);
    const worded = error.code === 'SERVE_UNAUTHORIZED' ? WRONG_KEY : error;
    return {
      status: 200,
      headers: { 'Content-Type': 'application/json' },
      body: Buffer.concat(failureReply(requestId, worded)),
    };
  },
};

const WRONG_KEY = new ServeError('SERVE_UNAUTHORIZED', 'The apiKey is not valid.');

/** The paths are described as clients write them, with a slash at the end. The models' route `/` may differ in its inputs, so they are described if only the default model can be called. */
function describePaths(server: DescribedServer): DescribedOperation[] {
  if (!describesClientsOf(server, 'banana')) return [];
  const { models } = server;
  const { default: model } = models;
  const isOnly = models.describe().every(({ model: other, isDefault }) => !isDefault || other === model);
  const route =
    isOnly && model !== null
      ? describedRoutes(model).all.find(({ path, kind }) => path === GATEWAY_ROUTE && kind !== 'websocket')
      : undefined;
  const { input = FREE, output = FREE } = route ?? {};
  return operationsOf(paths, { input, output });
}
