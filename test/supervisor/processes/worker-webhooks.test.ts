import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Channel } from '../../../protocol/wire/channel.js';
import { MAX_WEBHOOK_BYTES } from '../../../protocol/wire/limits.js';
import type { Message, WebhookOrder } from '../../../protocol/wire/messages.js';
import { WorkerWebhooks } from '../../../supervisor/processes/worker-webhooks.js';

const REF = 2 ** 32;

type WebhookMessage = Message & { type: 'webhook' | 'body' };

function order(fields: Partial<WebhookOrder> = {}): WebhookMessage {
  return {
    type: 'webhook',
    ref: REF,
    url: 'http://localhost/',
    contentType: '',
    requestId: '',
    timeoutMs: 1000,
    retries: 0,
    wait: false,
    bodyBytes: 4,
    ...fields,
  };
}

/** `taken`: bodies that came; `told`: the messages to the worker; `end` ends all that were taken. */
function setUp(takes = true): {
  webhooks: WorkerWebhooks;
  taken: string[];
  told: unknown[];
  end: () => void;
  keep: () => void;
} {
  const taken: string[] = [];
  const told: unknown[] = [];
  const ends: (() => void)[] = [];
  const channel = {
    send: (message: Message) =>
      void (message.type === 'webhookDone' && told.push([message.ref, message.outcome])),
    flush: () => {},
  } as unknown as Channel;
  const keeps: (() => void)[] = [];
  const webhooks = new WorkerWebhooks(channel, ({ body, events: { onKept, onEnd }, drop }) => {
    taken.push(body.toString());
    keeps.push(onKept);
    ends.push(() => onEnd('failed'));
    if (!takes) drop();
  });
  const call = (all: (() => void)[]) => () => all.forEach((one) => one());
  return { webhooks, taken, told, keep: call(keeps), end: call(ends) };
}

const pieces = (text: string): Buffer[] => [Buffer.from(text)];

test('a webhook in one frame is taken, and that is reported to the worker once it is stored', () => {
  const { webhooks, taken, told, keep, end } = setUp();
  webhooks.take(order(), pieces('body'));
  assert.deepEqual(told, []);
  keep();
  end();
  assert.deepEqual(taken, ['body']);
  assert.deepEqual(told, [[REF, 'taken']]);
});

test('a worker that waits gets the outcome, and only that', () => {
  const { webhooks, told, end } = setUp();
  webhooks.take(order({ wait: true }), pieces('body'));
  assert.deepEqual(told, []);
  end();
  assert.deepEqual(told, [[REF, 'failed']]);
});

test('a webhook that is not taken is reported as dropped, also to a worker that waits', () => {
  const { webhooks, told } = setUp(false);
  webhooks.take(order(), pieces('body'));
  webhooks.take(order({ ref: REF + 1, wait: true }), pieces('body'));
  assert.deepEqual(told, [
    [REF, 'dropped'],
    [REF + 1, 'dropped'],
  ]);
});

test('the fragments of a webhook are joined', () => {
  const { webhooks, taken } = setUp();
  webhooks.take(order(), pieces('bo'));
  assert.deepEqual(taken, []);
  webhooks.take({ type: 'body', id: REF }, pieces('dy'));
  webhooks.take(order({ ref: REF + 1, bodyBytes: 0 }), []);
  assert.deepEqual(taken, ['body', '']);
});

test('nothing is sent to a worker that is gone', () => {
  const { webhooks, told, end } = setUp();
  webhooks.take(order({ wait: true }), pieces('body'));
  webhooks.close();
  end();
  assert.deepEqual(told, []);
});

for (const [what, messages] of [
  ['over the limit, before memory is given', [[order({ bodyBytes: MAX_WEBHOOK_BYTES + 1 }), '']]],
  ['longer than announced', [[order(), 'body!']]],
  [
    'before the end of another',
    [
      [order(), 'bo'],
      [order({ ref: REF + 1 }), 'body'],
    ],
  ],
  ['whose fragment belongs to none', [[{ type: 'body', id: REF }, 'body']]],
] as readonly (readonly [string, readonly (readonly [WebhookMessage, string])[]])[]) {
  test(`a webhook ${what} breaks the protocol`, () => {
    const { webhooks } = setUp();
    assert.throws(() => messages.forEach(([message, text]) => webhooks.take(message, pieces(text))), {
      code: 'SERVE_PROTOCOL',
    });
  });
}
