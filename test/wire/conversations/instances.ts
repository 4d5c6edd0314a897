/** Calls of several inputs, as KServe's first protocol has them: each is a call of the app. */
import {
  answers,
  call,
  calls,
  comes,
  fails,
  hasBegun,
  inAnyOrder,
  type Conversation,
  type Step,
} from '../conversation.js';

const PREDICT = { format: 'predict', answer: 'predict' };

const predicts = (id: number, instances: readonly unknown[], batch = 4): Step =>
  call(id, { instances }, { ...PREDICT, dialectParams: `batch=${batch}` });

/** A batch of calls that have several inputs. */
function predictTogether(batch: number, rows: readonly (readonly unknown[])[]): Step {
  const parts = rows.map((instances, i) => [i + 1, JSON.stringify({ instances })] as const);
  return calls(batch, parts, true, { ...PREDICT, dialectParams: 'batch=4' });
}

const entry = (input: unknown, of: number, id = 'r1') => ({ input, of, id });
const refused = (message: RegExp): Step => fails(1, 'SERVE_BAD_BODY', { message });

const NO_LIST = refused(/^"instances" must be a list of inputs that is not empty\.$/);

export const INSTANCES: readonly Conversation[] = [
  {
    title: 'each input of a call is a call of an app without batches, and their values are the answer',
    app: 'DOES',
    steps: [
      predicts(7, [
        ['echo', { a: 'é' }],
        ['respond', { json: [1], status: 201 }],
        ['log', 1],
      ]),
      comes('log', { message: /careful/ }),
      answers(7, { predictions: [{ a: 'é' }, [1], 'done'] }, { contentType: 'application/json' }),
      hasBegun(7),
    ],
  },
  {
    title:
      'a batch function gets them together, as many as the front allows, and alone if the front allows one',
    app: 'BATCH',
    steps: [
      predicts(1, ['a', 'b', 'c', 'd', 'e', 'f']),
      answers(1, {
        predictions: [...['a', 'b', 'c', 'd'].map((one) => entry(one, 4)), entry('e', 2), entry('f', 2)],
      }),
      predicts(1, ['a', 'b'], 1),
      answers(1, {
        predictions: [
          { input: 'a', alone: true },
          { input: 'b', alone: true },
        ],
      }),
    ],
  },
  {
    title:
      'the inputs of several calls are in one batch, and one that fails fails its own call alone, with its place',
    app: 'BATCH',
    steps: [
      predictTogether(1, [
        ['a', 'b'],
        ['c', 'error', 'd'],
      ]),
      inAnyOrder(
        [1, answers(1, { predictions: [entry('a', 4), entry('b', 4)] })],
        [2, fails(2, 'SERVE_INFERENCE_FAILED', { message: /^instances\[1\]: /, detail: /only this one/ })],
      ),
      hasBegun(2),
    ],
  },
  {
    title: 'the calls with the fewest inputs come first, so that none waits for one of thousands',
    app: 'BATCH',
    steps: [
      predictTogether(1, [['a', 'b', 'c', 'd', 'e', 'f'], ['g']]),
      answers(2, { predictions: [entry('g', 4, 'r2')] }),
      answers(1, {
        predictions: [
          ...['a', 'b', 'c'].map((one) => entry(one, 4)),
          ...['d', 'e', 'f'].map((one) => entry(one, 3)),
        ],
      }),
    ],
  },
  {
    title: 'a batch function that throws for several inputs fails their calls without a place',
    app: 'BATCH',
    steps: [
      predictTogether(1, [['a', 'throw'], ['c']]),
      comes('log', { level: 'warn', message: /all 3 calls of its batch fail/ }),
      inAnyOrder(
        [1, fails(1, 'SERVE_INFERENCE_FAILED', { message: /^The model failed/, detail: /of one of them/ })],
        [2, fails(2, 'SERVE_INFERENCE_FAILED', { message: /^The model failed/ })],
      ),
      predicts(1, ['throw']),
      answers(1, { predictions: [{ input: 'throw', alone: true }] }),
    ],
  },
  {
    title: 'an app that is repeatable runs them again in halves, until the guilty one has its place',
    app: 'REPEATABLE',
    steps: [
      predictTogether(1, [['a'], ['b', 'c', 'bad']]),
      inAnyOrder(
        [1, answers(1, { predictions: [2] })],
        [2, fails(2, 'SERVE_INFERENCE_FAILED', { message: /^instances\[2\]: /, detail: /this one/ })],
      ),
    ],
  },
  {
    title: 'after the first input that fails, no other of its call runs',
    app: 'DOES',
    steps: [
      predicts(1, [
        ['refuse', [409, 'taken']],
        ['log', 'not run'],
      ]),
      fails(1, 'SERVE_HTTP_ERROR', { message: 'instances[0]: taken', status: 409 }),
      predicts(2, [
        ['echo', 1],
        ['respond', { status: 418, json: { message: 'tea' } }],
      ]),
      fails(2, 'SERVE_HTTP_ERROR', { message: 'instances[1]: tea', status: 418 }),
      predicts(3, [['numbers', 2]]),
      fails(3, 'SERVE_HTTP_ERROR', { message: /^instances\[0\]: This app streams/, status: 400 }),
    ],
  },
  {
    title: 'a body without instances is refused, and so is a parameter that an app cannot get',
    app: 'DOES',
    steps: [
      call(1, { instances: [] }, PREDICT),
      NO_LIST,
      call(1, { inputs: [1] }, PREDICT),
      NO_LIST,
      call(1, [1], PREDICT),
      refused(/^The body must be a JSON object, not a list\.$/),
      call(1, { instances: [['echo']], parameters: [1] }, PREDICT),
      refused(/^The request's parameters must be an object, not a list\.$/),
      call(1, { instances: [['echo']], parameters: { stop: ['.'] } }, PREDICT),
      refused(/^The parameter "stop" must be text, a number, true or false, not a list\.$/),
    ],
  },
];
