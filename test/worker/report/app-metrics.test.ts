import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Channel } from '../../../protocol/wire/channel.js';
import type { Message, Metric } from '../../../protocol/wire/messages.js';
import type { AppMetrics, MetricLabels } from '../../../worker/api/types.js';
import { appMetrics } from '../../../worker/report/app-metrics.js';
import { Tap } from '../../protocol/streams.js';

interface Measuring {
  readonly metrics: AppMetrics;
  /** The messages so far, after the turn of the event loop. */
  told(): Promise<(readonly Metric[])[]>;
}

function measuring(): Measuring {
  const tap = new Tap();
  const nothing = { onMessage: () => {}, onEnd: () => {}, onWriteError: () => {} };
  const metrics = appMetrics(new Channel(new PassThrough(), tap, nothing));
  const told = async (): Promise<(readonly Metric[])[]> => {
    await nextTurn();
    return tap.received.map(({ message }) => (message as Message & { type: 'metrics' }).metrics);
  };
  return { metrics, told };
}

const shown = ({ kind, name, value, dimensions }: Metric): unknown[] => [kind, name, value, dimensions];

test('metrics of one turn of the event loop leave in one message', async () => {
  const { metrics, told } = measuring();
  metrics.counter('pictures');
  metrics.counter('pictures', 2);
  metrics.gauge('cache_bytes', 10);
  metrics.gauge('cache_bytes', 5);
  metrics.histogram('sizes', 1);
  metrics.histogram('sizes', 1);
  const messages = await told();
  assert.equal(messages.length, 1);
  assert.deepEqual(messages[0]?.map(shown), [
    ['counter', 'pictures', 3, ''],
    ['gauge', 'cache_bytes', 5, ''],
    ['histogram', 'sizes', 1, ''],
    ['histogram', 'sizes', 1, ''],
  ]);
});

test('the next turn has a message of its own', async () => {
  const { metrics, told } = measuring();
  metrics.counter('pictures');
  assert.equal((await told()).length, 1);
  metrics.counter('pictures');
  assert.deepEqual(
    (await told()).map((message) => message.map(({ value }) => value)),
    [[1], [1]],
  );
});

test('labels of the same names and values are one series, in whatever order they stand', async () => {
  const { metrics, told } = measuring();
  metrics.counter('words', 1, { language: 'en', sure: true });
  metrics.counter('words', 1, { sure: true, language: 'en' });
  metrics.counter('words', 1, { language: 'de', sure: true });
  assert.deepEqual((await told())[0]?.map(shown), [
    ['counter', 'words', 2, 'language\nen\nsure\ntrue'],
    ['counter', 'words', 1, 'language\nde\nsure\ntrue'],
  ]);
});

test('an app that measures in a long loop does not gather more than a thousand values', async () => {
  const { metrics, told } = measuring();
  for (let i = 0; i < 2500; i += 1) metrics.histogram('sizes', i);
  const messages = await told();
  assert.ok(messages.length >= 3);
  assert.equal(messages.flat().length, 2500);
});

for (const [what, name, value, labels, error] of [
  ['a name with a hyphen', 'my-metric', 1, {}, /"my-metric": a name may have up to 256 letters/],
  ['a name that begins with a digit', '1st', 1, {}, /must not begin with a digit/],
  ['a name of the server', 'banana_calls', 1, {}, /banana_ or __ are reserved/],
  ['a name of a part of a histogram', 'calls_count', 1, {}, /reserved for histograms/],
  ['a value that is no number', 'calls', NaN, {}, /its value is not a finite number, but NaN/],
  ['a counter that falls', 'calls', -1, {}, /a counter cannot fall: -1 is below 0/],
  ['a label with a hyphen', 'calls', 1, { 'my-label': 1 }, /"my-label" is not a valid label/],
  ['a label of the server', 'calls', 1, { model: 'm' }, /the label "model" is reserved for the server/],
  ['a label with two lines', 'calls', 1, { text: 'a\nb' }, /must be one line of up to 256 characters/],
  ['a label of no text', 'calls', 1, { text: {} as string }, /must be text, a number or a boolean/],
  ['labels that are no object', 'calls', 1, 'en' as unknown as MetricLabels, /its labels must be an object/],
] satisfies [string, string, number, MetricLabels, RegExp][]) {
  test(`${what} throws, and nothing is sent`, async () => {
    const { metrics, told } = measuring();
    assert.throws(() => metrics.counter(name, value, labels), error);
    assert.deepEqual(await told(), []);
  });
}

test('a metric keeps its kind', () => {
  const { metrics } = measuring();
  metrics.counter('calls');
  assert.throws(() => metrics.gauge('calls', 1), /"calls": it is a counter, not a gauge/);
});

test('an app may have a hundred metrics', () => {
  const { metrics } = measuring();
  for (let i = 0; i < 100; i += 1) metrics.counter(`m${i}`);
  assert.throws(() => metrics.counter('m100'), /an app may have 100 metrics/);
  metrics.counter('m0');
});
