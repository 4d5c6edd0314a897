import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Channel } from '../../../protocol/wire/channel.js';
import { encodeHead } from '../../../protocol/wire/codec.js';
import { MAX_HEAD_BYTES } from '../../../protocol/wire/limits.js';
import type { Message, Metric } from '../../../protocol/wire/messages.js';
import { sendMetrics } from '../../../worker/report/app-metrics.js';

function told(metrics: readonly Metric[]): Message[] {
  const sent: Message[] = [];
  sendMetrics({ send: (message: Message) => sent.push(message) } as unknown as Channel, metrics);
  return sent;
}

function metric(name: string, calls: number): Metric {
  const callIds = Array.from({ length: calls }, (_, i) => 2 ** 31 + i);
  return { kind: 'gauge', name, value: 1, unit: 'ü'.repeat(1000), dimensions: 'é\nß', callIds };
}

test('without metrics no message is sent', () => assert.deepEqual(told([]), []));

test('many metrics of many calls arrive in order, in messages far below the limit of a head', () => {
  const metrics = Array.from({ length: 300 }, (_, i) => metric(`m${i}`, 1024));
  const messages = told(metrics);
  assert.ok(messages.length > 1);
  for (const message of messages) assert.ok(encodeHead(message).length < MAX_HEAD_BYTES / 4);
  assert.deepEqual(
    messages.flatMap((message) => (message.type === 'metrics' ? message.metrics : [])),
    metrics,
  );
});

test('a metric of as many calls as a batch may ever have fits into a message of its own', () => {
  const messages = told([metric('first', 1), metric('all', 0xffff), metric('last', 1)]);
  assert.equal(messages.length, 3);
  for (const message of messages) assert.ok(encodeHead(message).length < MAX_HEAD_BYTES);
});

test('a sum beyond the range of numbers is sent as text, which every front reads', () => {
  const { kind, name, unit, dimensions, callIds } = metric('sum', 1);
  for (const value of [Infinity, -Infinity, NaN]) {
    const [message] = told([{ kind, name, value, unit, dimensions, callIds }]);
    assert.equal(message?.type === 'metrics' && message.metrics[0]?.value, String(value));
  }
});
