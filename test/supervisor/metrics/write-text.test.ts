/** The metrics page of many models is written in slices. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Buckets } from '../../../supervisor/metrics/call-counts.js';
import { writeText, type Family } from '../../../supervisor/metrics/prometheus.js';

const MODELS = 600;

function families(): Family[] {
  const bounds = [0.1, 1];
  return [
    {
      name: 'calls_total',
      type: 'counter',
      help: 'Calls.',
      measured: Array.from({ length: MODELS }, (_, i) => ({ labels: { model: `m${i}` }, value: i })),
    },
    {
      name: 'run_seconds',
      type: 'histogram',
      help: 'Run time.',
      measured: Array.from({ length: MODELS }, (_, i) => ({
        labels: { model: `m${i}` },
        value: new Buckets(bounds),
      })),
    },
    { name: 'none', type: 'gauge', help: 'Nothing.', measured: [] },
  ];
}

test('a page of 600 models is written over many turns of the event loop, each line once and in order', async (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => (nowMs += 2)); // every slice takes the time of a turn
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const text = await writeText(families());
  isDone = true;
  const names = Array.from({ length: MODELS }, (_, i) => `model="m${i}"`);
  const expected = [
    '# HELP calls_total Calls.',
    '# TYPE calls_total counter',
    ...names.map((name, i) => `calls_total{${name}} ${i}`),
    '',
    '# HELP run_seconds Run time.',
    '# TYPE run_seconds histogram',
    ...names.flatMap((name) => [
      ...['0.1', '1', '+Inf'].map((le) => `run_seconds_bucket{${name},le="${le}"} 0`),
      `run_seconds_sum{${name}} 0`,
      `run_seconds_count{${name}} 0`,
    ]),
    '',
    '# HELP none Nothing.',
    '# TYPE none gauge',
    '',
  ];
  assert.deepEqual(text.split('\n'), expected);
  assert.ok(turns >= 2, `${turns} turns`); // a turn ends by its time
});
