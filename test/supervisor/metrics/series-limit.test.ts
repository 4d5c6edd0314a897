import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Buckets } from '../../../supervisor/metrics/call-counts.js';
import { seriesLimit, type Measured } from '../../../supervisor/metrics/prometheus.js';

function models(...names: readonly string[]): Measured[] {
  return names.map((model, i) => ({ labels: { model, version: '1' }, value: 10 ** i }));
}

const shown = (measured: readonly Measured[]): string[] =>
  measured.map(({ labels, value }) => `${labels['model']} ${value as number}`);

test('combinations of labels beyond the limit are counted together as other', () => {
  const limit = seriesLimit(2);
  const bounded = limit(models('a', 'b', 'c', 'd'));
  assert.deepEqual(shown(bounded), ['a 1', 'b 10', 'other 1100']);
  assert.deepEqual(bounded.at(-1)?.labels, { model: 'other', version: 'other' });
});

test('a combination keeps its place even if another comes before it', () => {
  const limit = seriesLimit(2);
  limit(models('b', 'c'));
  assert.deepEqual(shown(limit(models('a', 'b', 'c'))), ['b 10', 'c 100', 'other 1']);
});

test('a combination that is no longer measured frees its place', () => {
  const limit = seriesLimit(2);
  limit(models('a', 'b'));
  assert.deepEqual(shown(limit(models('b', 'c'))), ['b 1', 'c 10']);
});

test('histograms beyond the limit add up', () => {
  const buckets = (value: number): Buckets => {
    const one = new Buckets([1]);
    one.add(value);
    return one;
  };
  const limit = seriesLimit(1);
  const all = [0.5, 0.5, 2].map((value, i) => ({ labels: { model: `m${i}` }, value: buckets(value) }));
  const [, other] = limit(all);
  assert.deepEqual([...(other?.value as Buckets).counts], [1, 1]);
});
