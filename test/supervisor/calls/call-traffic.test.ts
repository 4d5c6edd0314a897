import assert from 'node:assert/strict';
import { DATA_OVERHEAD_BYTES } from '../../../protocol/wire/limits.js';
import type { Message } from '../../../protocol/wire/messages.js';
import { test, type TestContext } from 'node:test';
import type { Conversation } from '../../../supervisor/dispatch/call.js';
import { CallAnswers } from '../../../supervisor/calls/call-messages.js';
import type { CallHolder } from '../../../supervisor/calls/held-batch.js';
import { FakeChannel, heldCall } from './held-call.js';

const PIECES = [Buffer.from('ab'), Buffer.from('c')];
const DATA: Message = { type: 'data', id: 7, text: true, last: true };
const WAITING: Message = { type: 'waiting', id: 7, received: 0 };

/** A WebSocket call with a client that reads when the test lets it. */
function setUp(t: TestContext) {
  t.mock.method(performance, 'now', () => 1000);
  const channel = new FakeChannel();
  const story: string[] = [];
  const takes: (() => void)[] = [];
  const held = heldCall(7);
  const conversation: Conversation = {
    data: (_part, pieces, taken) => {
      story.push(`data ${Buffer.concat(pieces).toString()}`);
      takes.push(taken);
    },
    credit: (bytes) => story.push(`credit ${bytes}`),
    waiting: () => story.push('waiting'),
    goAway: () => assert.fail('the worker must not be ended'),
    close: (code, reason) => story.push(`close ${code} ${reason}`),
  };
  held.call.conversation = conversation;
  const worker: Partial<CallHolder> = {
    channel: channel.asChannel,
    flushSoon: () => channel.flush(),
    find: () => held,
    checkActive: () => {},
  };
  const traffic = new CallAnswers(worker as CallHolder, 1000);
  return { traffic, call: held, channel, story, take: () => takes.forEach((taken) => taken()) };
}

test('messages of a worker on a WebSocket reach its client, in order', (t) => {
  const { traffic, story } = setUp(t);
  traffic.take(DATA, PIECES);
  traffic.take({ type: 'credit', id: 7, bytes: 9 }, []);
  traffic.take(WAITING, []);
  traffic.take({ type: 'close', id: 7, code: 3000, reason: 'done' }, []);
  assert.deepEqual(story, ['data abc', 'credit 9', 'waiting', 'close 3000 done']);
});

test('the worker gets credit again once the client has read its bytes, not before', (t) => {
  const { traffic, channel, take } = setUp(t);
  traffic.take(DATA, PIECES);
  assert.deepEqual(channel.sent, []);
  take();
  assert.deepEqual(channel.sent, [{ type: 'credit', id: 7, bytes: 3 + DATA_OVERHEAD_BYTES }]);
  assert.equal(channel.flushes, 1);
});

test('the worker of a streamed answer gets credit again once the client has read its bytes', (t) => {
  const { traffic, channel } = setUp(t);
  traffic.take({ type: 'chunk', id: 7 }, PIECES); // the test's sink takes it at once
  assert.deepEqual(channel.sent, [{ type: 'credit', id: 7, bytes: 3 }]);
});

test('a settled call passes on nothing more', (t) => {
  const { traffic, call: held, channel, story } = setUp(t);
  held.call.end(0);
  traffic.take({ type: 'chunk', id: 7 }, PIECES);
  for (const message of [DATA, WAITING]) traffic.take(message, PIECES);
  assert.deepEqual([story, channel.sent], [[], []]);
});

for (const type of ['data', 'credit', 'waiting', 'close'] as const) {
  test(`${type} in a call that is not a WebSocket breaks the protocol`, (t) => {
    const { traffic, call: held } = setUp(t);
    held.call.conversation = null;
    const message = { type, id: 7 } as Message;
    assert.throws(() => traffic.take(message, []), {
      code: 'SERVE_PROTOCOL',
      detail: `${type} in call 7, which is not a WebSocket`,
    });
  });
}
