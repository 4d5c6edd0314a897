import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppSeries } from '../../../supervisor/metrics/app-series.js';
import { Buckets } from '../../../supervisor/metrics/call-counts.js';
import type { Model } from '../../../supervisor/models/model.js';
import type { AppMetric } from '../../../supervisor/processes/worker-listener.js';
import type { Slot } from '../../../supervisor/slots/slot.js';

const DIGITS = { spec: { name: 'digits', version: '1' } } as Model;
const CATS = { spec: { name: 'cats', version: '2' } } as Model;

interface Bench {
  readonly apps: AppSeries;
  readonly problems: string[];
}

function bench(models: readonly Model[] = [DIGITS, CATS]): Bench {
  const problems: string[] = [];
  const apps = new AppSeries(
    () => models,
    (name) => name.startsWith('banana_'),
    (problem) => problems.push(problem),
  );
  return { apps, problems };
}

function metric(kind: AppMetric['kind'], name: string, value: number | string, dimensions = ''): AppMetric {
  return { kind, name, value, unit: '', dimensions, requestIds: [] };
}

/** All samples as text, such as `words{model=digits,version=1} 3`. */
function shown({ apps }: Bench): string[] {
  return apps.families().flatMap(({ name, measured }) =>
    Array.from(measured, ({ labels, value }) => {
      const pairs = Object.entries(labels).map((pair) => pair.join('='));
      return `${name}{${pairs.join()}} ${value instanceof Buckets ? [...value.counts].join('') : value}`;
    }),
  );
}

test('counters are summed over all workers, gauges are kept per worker', () => {
  const one = bench();
  for (const worker of [0, 1]) {
    one.apps.measured(DIGITS, worker, [
      metric('counter', 'words', 2, 'language\nen'),
      metric('gauge', 'g', worker),
    ]);
  }
  assert.deepEqual(shown(one), [
    'words{model=digits,version=1,language=en} 4',
    'g{model=digits,version=1,worker=0} 0',
    'g{model=digits,version=1,worker=1} 1',
  ]);
});

test('the death of a worker removes its gauges only, unless its slot has another worker', () => {
  const one = bench();
  one.apps.measured(DIGITS, 0, [metric('counter', 'words', 1), metric('gauge', 'g', 1)]);
  one.apps.died(DIGITS, { index: 0, worker: {} } as Slot);
  assert.equal(shown(one).length, 2);
  one.apps.died(DIGITS, { index: 0, worker: null } as Slot);
  one.apps.measured(DIGITS, 0, [metric('counter', 'words', 1)]);
  assert.deepEqual(shown(one), ['words{model=digits,version=1} 2']);
});

test('one metric of two models is one family, without removed models', () => {
  const models = [DIGITS, CATS];
  const one = bench(models);
  for (const model of [DIGITS, CATS]) one.apps.measured(model, 0, [metric('counter', 'words', 1)]);
  assert.deepEqual(shown(one), ['words{model=digits,version=1} 1', 'words{model=cats,version=2} 1']);
  models.shift();
  assert.deepEqual(shown(one), ['words{model=cats,version=2} 1']);
});

test('names and labels are made valid for Prometheus, and those of the server are kept apart', () => {
  const one = bench();
  const dimensions = 'ModelName\ndigits\nLevel\nModel\nmodel\nmine\nmy-dimension\nx';
  one.apps.measured(DIGITS, 0, [metric('time', 'Handler Time', 1.5, dimensions), metric('size', '2nd', 1)]);
  assert.deepEqual(shown(one), [
    'Handler_Time{model=digits,version=1,exported_model=mine,my_dimension=x,worker=0} 1.5',
    '_2nd{model=digits,version=1,worker=0} 1',
  ]);
});

for (const [what, metrics, problem] of [
  ['of another kind', [metric('gauge', 'words', 1)], /a counter already has this name/],
  [
    "with a name of the server's",
    [metric('counter', 'banana_calls_total', 1)],
    /the server has a metric of this name/,
  ],
  [
    'with the name of a part of a histogram',
    [metric('histogram', 'h', 1), metric('counter', 'h_count', 1)],
    /a part of a histogram/,
  ],
] satisfies [string, AppMetric[], RegExp][]) {
  test(`a metric ${what} is left out, which is reported once`, () => {
    const one = bench();
    one.apps.measured(DIGITS, 0, [metric('counter', 'words', 1)]);
    const before = shown(one).length;
    for (let i = 0; i < 2; i += 1) one.apps.measured(CATS, 0, metrics);
    assert.equal(shown(one).length, before + metrics.length - 1);
    assert.equal(one.problems.length, 1);
    assert.match(one.problems[0] as string, problem);
  });
}

test('values that are not numbers, and negative counters, are left out; the latter are reported once', () => {
  const one = bench();
  const bad = [metric('error', 'e', 'broken'), metric('gauge', 'g', NaN), metric('counter', 'c', -1)];
  for (let i = 0; i < 2; i += 1) one.apps.measured(DIGITS, 0, bad);
  assert.deepEqual(shown(one), []);
  assert.deepEqual(one.problems, ['a value of the metric c of digits is left out: a counter only rises']);
});

test('a model has at most a thousand combinations of labels; later ones are other', () => {
  const one = bench();
  for (let i = 0; i < 1100; i += 1)
    one.apps.measured(DIGITS, 0, [metric('counter', 'users', 1, `user\nu${i}`)]);
  const all = shown(one);
  assert.equal(all.length, 1001);
  assert.equal(all.at(-1), 'users{model=digits,version=1,user=other} 100');
});

test('the order of labels does not matter, even after they are made valid', () => {
  const one = bench();
  for (const dimensions of ['a\n1\nb\n2', 'b\n2\na\n1', 'b\n2\na\n1\nLevel\nModel'])
    one.apps.measured(DIGITS, 0, [metric('counter', 'words', 1, dimensions)]);
  assert.deepEqual(shown(one), ['words{model=digits,version=1,a=1,b=2} 3']);
});

test('the names of removed models become free, with or without scrapes', () => {
  const models = [DIGITS];
  const one = bench(models);
  for (let i = 0; i < 3000; i += 1) {
    const model = { spec: { name: `m${i}`, version: '1' } } as Model;
    models.splice(0, 1, model);
    one.apps.measured(model, 0, [metric('counter', `own_${i}`, 1), metric('counter', 'words', 1)]);
  }
  models.splice(0, 1, CATS);
  one.apps.measured(CATS, 0, [metric('gauge', 'own_0', 1)]);
  assert.deepEqual([shown(one), one.problems], [['own_0{model=cats,version=2,worker=0} 1'], []]);
});
