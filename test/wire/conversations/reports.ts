/** Messages of a call beside its answer, and what it prints. */
import { FIRST_WEBHOOK_REF, MAX_FRAGMENT_BYTES } from '../../../protocol/wire/limits.js';
import {
  OF_NO_CALL,
  answers,
  call,
  comes,
  exits,
  inAnyOrder,
  sends,
  stop,
  type Conversation,
} from '../conversation.js';
import { TRACE } from './calls.js';

const TOKENS = {
  kind: 'counter',
  name: 'tokens',
  value: 3,
  unit: '',
  dimensions: 'language\nen',
  callIds: [],
};

export const REPORTS: readonly Conversation[] = [
  {
    title:
      'a line of the log comes before the ending of its call; metrics of no call in particular at any time',
    app: 'DOES',
    steps: [
      call(1, ['log'], { headers: `traceparent\n${TRACE}` }),
      comes('log', {
        level: 'warn',
        message: 'careful',
        requestId: 'r1',
        fields: JSON.stringify({ traceparent: TRACE, gb: 1.5 }),
      }),
      answers(1, 'done'),
      call(2, ['count', 3]),
      inAnyOrder([OF_NO_CALL, comes('metrics', { metrics: [TOKENS] })], [2, answers(2, 'done')]),
    ],
  },
  {
    title:
      'progress of a job is sent at once, and the last one before the ending; that of a waiting client is not',
    app: 'DOES',
    steps: [
      call(1, ['progress', [0.1, 0.2, 0.3]], { job: { id: 'j', attempt: 2 } }),
      comes('progress', { id: 1, fraction: 0.1, text: 'at 0.1' }),
      comes('progress', { id: 1, fraction: 0.3, text: 'at 0.3' }),
      answers(1, { id: 'j', attempt: 2 }),
      call(2, ['progress', [0.1]]),
      answers(2, 'done'),
    ],
  },
  {
    title: 'a webhook is handed to the front, whole, and a waiting app learns when it has ended',
    app: 'DOES',
    steps: [
      call(1, ['webhook', [true, 'x'.repeat(299_998)]]),
      comes('webhook', {
        ref: FIRST_WEBHOOK_REF,
        url: 'https://example.com/hook',
        contentType: /^(application\/json)?$/,
        requestId: 'r1',
        timeoutMs: 1500,
        retries: 0,
        wait: true,
        bodyBytes: 300_000,
      }),
      comes('body', { id: FIRST_WEBHOOK_REF }, `${'x'.repeat(300_000 - MAX_FRAGMENT_BYTES - 1)}"`),
      sends({ type: 'webhookDone', ref: FIRST_WEBHOOK_REF, outcome: 'failed' }),
      answers(1, 'sent'),
      call(2, ['webhook', [false, 1]]),
      comes('webhook', { wait: false, bodyBytes: 1 }, '1'),
      sends({ type: 'webhookDone', ref: FIRST_WEBHOOK_REF + 1, outcome: 'taken' }),
      answers(2, 'sent'),
    ],
  },
  {
    title: 'nothing that the app writes to its stdout and stderr disturbs the frames',
    app: 'DOES',
    steps: [
      call(1, ['write']),
      answers(1, 'done'),
      stop(),
      exits({ stdout: 'out\nraw\nshut down\n', stderr: 'err\n' }),
    ],
  },
  {
    title: 'with a print mark, each print is marked with its call',
    app: 'DOES',
    spec: { printMark: 'k3' },
    steps: [
      call(1, ['print', 'one']),
      call(2, ['print', 'two']),
      answers(1, 'done'),
      answers(2, 'done'),
      stop(),
      exits({
        // eslint-disable-next-line no-control-regex -- a mark is made of control characters
        stdout: /^\x1fk3 r1\x1fone\n(\x1fk3 \x1f)?\x1fk3 r2\x1ftwo\n\x1fk3 \x1fshut down\n$/,
      }),
    ],
  },
  {
    title: 'a program that the app starts inherits none of the descriptors',
    app: 'DOES',
    steps: [call(1, ['descriptors']), answers(1, '')],
  },
];
