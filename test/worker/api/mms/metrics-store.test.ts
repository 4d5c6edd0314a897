import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_METRICS } from '../../calls.js';
import { Dimension, MetricsStore, takeMetrics } from '../../../../worker/api/mms/metrics-store.js';
import { writeHintsTo } from '../../../../worker/process/hint-once.js';

const MODEL = [
  { name: 'ModelName', value: 'm' },
  { name: 'Level', value: 'Model' },
];

const store = (items = 3): MetricsStore => new MetricsStore('m', items, NO_METRICS);

function taken(from: MetricsStore): unknown[] {
  return takeMetrics(from).map(({ kind, name, value, unit, idx }) => [kind, name, value, unit, idx]);
}

test('a counter adds up, any other metric keeps its last value', () => {
  const metrics = store();
  for (const value of [1, 2]) {
    metrics.addCounter('c', value);
    metrics.add_counter('c', value, 1);
    metrics.addTime('t', value);
    metrics.add_time('t', value, null, 's');
    metrics.addSize('s', value, 0, 'kB');
    metrics.addPercent('p', value);
    metrics.addMetric('g', value, null, 'Tokens');
    metrics.addError('e', `failure ${value}`);
  }
  assert.deepEqual(taken(metrics), [
    ['counter', 'c', 3, 'count', null],
    ['counter', 'c', 3, 'count', 1],
    ['time', 't', 2, 'ms', null],
    ['time', 't', 2, 's', null],
    ['size', 's', 2, 'kB', 0],
    ['percent', 'p', 2, 'percent', null],
    ['gauge', 'g', 2, 'Tokens', null],
    ['error', 'e', 'failure 2', '', null],
  ]);
  assert.deepEqual(taken(metrics), [], 'what was taken is gone');
});

test('every kind of metric keeps its own dimensions, with the model’s behind them', () => {
  const own = [new Dimension('Layer', 1)];
  const metrics = store();
  metrics.addCounter('a', 1, null, own);
  metrics.addTime('a', 1, null, 'ms', own);
  metrics.addSize('a', 1, null, 'MB', own);
  metrics.addPercent('a', 1, null, own);
  metrics.addMetric('a', 1, null, '', own);
  metrics.addError('a', 1, own);
  const dimensions = takeMetrics(metrics).map((metric) => metric.dimensions.map((each) => ({ ...each })));
  const layer = { name: 'Layer', value: '1' };
  for (const each of dimensions.slice(0, 5)) assert.deepEqual(each, [layer, ...MODEL]);
  assert.deepEqual(dimensions[5], [layer, { name: 'Level', value: 'Error' }]);
});

test('the same name with other dimensions is another metric', () => {
  const metrics = store();
  for (const value of ['a', 'b']) metrics.addCounter('c', 1, null, [new Dimension('D', value)]);
  assert.equal(takeMetrics(metrics).length, 2);
});

const MISTAKES: readonly (readonly [what: string, add: (metrics: MetricsStore) => void, message: RegExp])[] =
  [
    [
      'a time in minutes',
      (m) => m.addTime('t', 1, null, 'min'),
      /^RangeError: the unit for a timed metric should be one of \['ms', 's'\]$/,
    ],
    [
      'a size in miles',
      (m) => m.add_size('t', 1, null, 'mi'),
      /^RangeError: The unit for size based metric is one of \['MB','kB', 'GB', 'B'\]$/,
    ],
    [
      'an item that is not there',
      (m) => m.addCounter('t', 1, 3),
      /^RangeError: metric "t": there is no item 3; there are 3/,
    ],
    ['an empty name', (m) => m.addCounter('', 1), /^TypeError: metric "": its name must not be empty/],
    ['a name of two lines', (m) => m.addCounter('a\nb', 1), /^TypeError: metric "a\\nb": its name must not/],
    ['a text without end', (m) => m.addCounter('a'.repeat(5000), 1), /are 5025 characters; 4096 are allowed/],
    [
      'dimensions that are no list',
      (m) => m.addCounter('a', 1, null, 'Layer' as never),
      /^TypeError: the dimensions of a metric must be an array of Dimension/,
    ],
  ];

test('a value that is no finite number is dropped with one line for each metric', () => {
  const lines: string[] = [];
  writeHintsTo((line) => lines.push(line));
  const metrics = store();
  for (const value of [NaN, Infinity, undefined, null, '5']) {
    metrics.addCounter('t', value as number);
    metrics.addTime('u', value as number);
  }
  metrics.addCounter('t', 1);
  assert.deepEqual(
    takeMetrics(metrics).map(({ name, value }) => [name, value]),
    [['t', 1]],
  );
  assert.equal(lines.length, 2);
  for (const [i, name] of ['t', 'u'].entries())
    assert.ok(lines[i]?.startsWith(`metric "${name}": a value that is not a finite number is dropped.`));
});

test('a value with which the sum of a counter would not be finite is dropped with a line', () => {
  const lines: string[] = [];
  writeHintsTo((line) => lines.push(line));
  const metrics = store();
  for (const value of [1e308, 1e308, 1]) metrics.addCounter('huge', value);
  assert.deepEqual(
    takeMetrics(metrics).map(({ value }) => value),
    [1e308],
  );
  const dropped = 'metric "huge": a value with which its sum is not a finite number is dropped.';
  assert.deepEqual(lines, [`${dropped} (This is logged once per worker.)`]);
});

for (const [what, add, message] of MISTAKES) {
  test(`a metric with ${what} is refused, and no part of it is kept`, () => {
    const metrics = store();
    assert.throws(
      () => add(metrics),
      (error) => message.test(String(error)),
    );
    assert.deepEqual(taken(metrics), []);
  });
}
