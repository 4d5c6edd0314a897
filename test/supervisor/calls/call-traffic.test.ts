import assert from 'node:assert/strict';
import { DATA_OVERHEAD_BYTES } from '../../../protocol/wire/messages.js';
import { test, type TestContext } from 'node:test';
import type { Conversation } from '../../../supervisor/dispatch/call.js';
import { CallTraffic, type ConversationMessage } from '../../../supervisor/calls/call-traffic.js';
import { clientWaitOf } from '../../../supervisor/calls/held-batch.js';
import { FakeChannel, heldCall } from './held-call.js';

const PIECES = [Buffer.from('ab'), Buffer.from('c')];
const DATA: ConversationMessage = { type: 'data', id: 7, text: true, last: true };
const WAITING: ConversationMessage = { type: 'waiting', id: 7, received: 0 };

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
  const traffic = new CallTraffic(channel.asChannel, () => channel.flush());
  return { traffic, call: held, channel, story, take: () => takes.forEach((taken) => taken()) };
}

test('messages of a worker on a WebSocket reach its client, in order', (t) => {
  const { traffic, call: held, story } = setUp(t);
  traffic.onConversation(held, DATA, PIECES);
  traffic.onConversation(held, { type: 'credit', id: 7, bytes: 9 }, []);
  traffic.onConversation(held, WAITING, []);
  traffic.onConversation(held, { type: 'close', id: 7, code: 3000, reason: 'done' }, []);
  assert.deepEqual(story, ['data abc', 'credit 9', 'waiting', 'close 3000 done']);
});

test('the worker gets credit again once the client has read its bytes, not before', (t) => {
  const { traffic, call: held, channel, take } = setUp(t);
  traffic.onConversation(held, DATA, PIECES);
  assert.deepEqual(channel.sent, []);
  take();
  assert.deepEqual(channel.sent, [{ type: 'credit', id: 7, bytes: 3 + DATA_OVERHEAD_BYTES }]);
  assert.equal(channel.flushes, 1);
});

test('the worker of a streamed answer gets credit again once the client has read its bytes', (t) => {
  const { traffic, call: held, channel } = setUp(t);
  traffic.onChunk(held, PIECES); // the test's sink takes it at once
  assert.deepEqual(channel.sent, [{ type: 'credit', id: 7, bytes: 3 }]);
});

test('messages of the client go to the worker, and end its wait', (t) => {
  const { traffic, call: held, channel, story } = setUp(t);
  traffic.send(held, { text: false, last: true }, Buffer.from('hi'));
  assert.deepEqual(channel.sent, [{ type: 'data', id: 7, text: false, last: true }]);
  assert.equal(channel.flushes, 1);
  traffic.onConversation(held, WAITING, []); // sent before it came
  assert.deepEqual(story, []);
});

test('a settled call passes on nothing more', (t) => {
  const { traffic, call: held, channel, story } = setUp(t);
  held.call.end(0);
  traffic.onChunk(held, PIECES);
  for (const message of [DATA, WAITING]) traffic.onConversation(held, message, PIECES);
  assert.deepEqual([story, channel.sent], [[], []]);
  assert.equal(clientWaitOf(held).onWaiting(0), true);
});

for (const type of ['data', 'credit', 'waiting', 'close'] as const) {
  test(`${type} in a call that is not a WebSocket breaks the protocol`, (t) => {
    const { traffic, call: held } = setUp(t);
    held.call.conversation = null;
    const message = { type, id: 7 } as ConversationMessage;
    assert.throws(() => traffic.onConversation(held, message, []), {
      code: 'SERVE_PROTOCOL',
      detail: `${type} in call 7, which is not a WebSocket`,
    });
  });
}
