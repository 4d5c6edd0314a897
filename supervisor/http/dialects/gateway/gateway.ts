/**
 * The gateway dialect: the API that the Banana platform had for its clients of majors 2 to 4. A client starts a call,
 * then polls until the call has ended.
 *
 * 1. A start becomes a kept job of the route `/` of the model that `modelKey` names (`start.ts`), whether its client
 *    stays connected or not. The model's input stays bytes.
 * 2. A check and feedback start nothing and take no place in a queue (`question.ts`).
 * 3. A client that waits for the result, in the start itself or in a check, gets an answer when the job ends, or after
 *    a time the answer that it is still running (`hold.ts`).
 *
 * The key is in the body. Every reply is HTTP 200, failures included (`reply.ts`).
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { RequestContext } from '../../request/request-context.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import { houseFailure } from '../../answer/house-error.js';
import { writtenPath } from '../../socket/request-facts.js';
import type { Dialect, Operation } from '../dialect.js';
import { describePaths } from './describe.js';
import { answerCheck, answerFeedback } from './question.js';
import { failureReply } from './reply.js';
import { startPlan } from './start.js';

type GatewayAction = 'start' | 'start and wait' | 'check' | 'feedback';

const ACTIONS: readonly (readonly [path: string, action: GatewayAction])[] = [
  ['/start/v2', 'start'],
  ['/start/v3', 'start and wait'],
  ['/start/v4', 'start and wait'],
  ['/check/v2', 'check'],
  ['/check/v3', 'check'],
  ['/check/v4', 'check'],
  ['/feedback/v2', 'feedback'],
];

/**
 * The paths of the platform's gateway, as Banana's first clients call them (v3 is the path of Go's client and of
 * Python's 3.0.1). The clients write a slash at the end; people do not.
 */
const PATHS: ReadonlyMap<string, GatewayAction> = new Map(
  ACTIONS.flatMap(([path, action]) => [
    [path, action],
    [`${path}/`, action],
  ]),
);

const METHODS = 'POST';

export const gateway: Dialect = {
  name: 'gateway',
  ...BANANA_CLIENTS,
  paths: new Map([...PATHS.keys()].map((path) => [path, METHODS])),
  describe: describePaths,

  claim(context, models) {
    const action = PATHS.get(context.path);
    if (action === undefined) return null;
    if (context.request.method !== 'POST') return wrongMethod(context);
    const common = { auth: 'body', methods: METHODS } as const;
    if (action === 'check') return { ...common, counts: false, act: { answer: answerCheck } };
    if (action === 'feedback') return { ...common, counts: false, act: { answer: answerFeedback } };
    return { ...common, counts: true, act: startPlan(models, action === 'start and wait') };
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

function wrongMethod({ request: { method, url } }: RequestContext): Operation {
  const message = `${writtenPath(url)} takes ${METHODS}, not ${method}.`;
  const refuse = new ServeError('SERVE_METHOD_NOT_ALLOWED', message);
  return { auth: 'call', counts: false, methods: METHODS, act: { refuse } };
}
