/**
 * The gateway dialect: what the platform's API was to Banana's clients of majors 2 to 4. A call is started, then
 * asked for until it has ended.
 *
 * 1. A start becomes a kept job of the route `/` of the model that `modelKey` names (`start.ts`), whether its client
 *    stays or not. The model's input stays bytes.
 * 2. A check and feedback start nothing and need no place (`question.ts`).
 * 3. Whoever waits for the result, in the start itself or in a check, is told when the job ends, or after a time that
 *    it still runs (`hold.ts`).
 *
 * The key stands in the body. Every reply is HTTP 200, failures too (`reply.ts`).
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { RequestContext } from '../../request/request-context.js';
import { BANANA_CLIENTS } from '../../access/banana-clients.js';
import { houseFailure } from '../../answer/house-error.js';
import { writtenPath } from '../../socket/request-facts.js';
import type { Dialect, Operation } from '../dialect.js';
import { answerCheck, answerFeedback } from './question.js';
import { failureReply } from './reply.js';
import { startPlan } from './start.js';

type Offer = 'start' | 'start and wait' | 'check' | 'feedback';

const OFFERS: readonly (readonly [path: string, offer: Offer])[] = [
  ['/start/v2', 'start'],
  ['/start/v3', 'start and wait'],
  ['/start/v4', 'start and wait'],
  ['/check/v2', 'check'],
  ['/check/v3', 'check'],
  ['/check/v4', 'check'],
  ['/feedback/v2', 'feedback'],
];

/**
 * Where Banana's first clients (v3 is the path of Go's client and of Python's 3.0.1) look for the platform's gateway.
 * The clients write a slash at the end; people do not.
 */
const PATHS: ReadonlyMap<string, Offer> = new Map(
  OFFERS.flatMap(([path, offer]) => [
    [path, offer],
    [`${path}/`, offer],
  ]),
);

const METHODS = 'POST';

export const gateway: Dialect = {
  name: 'gateway',
  ...BANANA_CLIENTS,
  paths: new Map([...PATHS.keys()].map((path) => [path, METHODS])),

  claim(context, models) {
    const offer = PATHS.get(context.path);
    if (offer === undefined) return null;
    if (context.request.method !== 'POST') return wrongMethod(context);
    const common = { auth: 'body', methods: METHODS } as const;
    if (offer === 'check') return { ...common, counts: false, act: { answer: answerCheck } };
    if (offer === 'feedback') return { ...common, counts: false, act: { answer: answerFeedback } };
    return { ...common, counts: true, act: startPlan(models, offer === 'start and wait') };
  },

  /** These clients only send `POST`; who sends another method, or no HTTP, is none of them. */
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

const WRONG_KEY = new ServeError('SERVE_UNAUTHORIZED', 'The apiKey is none that is known here.');

function wrongMethod({ request: { method, url } }: RequestContext): Operation {
  const message = `${writtenPath(url)} takes ${METHODS}, not ${method}.`;
  const refuse = new ServeError('SERVE_METHOD_NOT_ALLOWED', message);
  return { auth: 'call', counts: false, methods: METHODS, act: { refuse } };
}
