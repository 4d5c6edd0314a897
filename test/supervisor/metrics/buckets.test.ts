import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Buckets, SECONDS } from '../../../supervisor/metrics/buckets.js';

test('a value counts in the first bucket whose bound it does not exceed', () => {
  const buckets = new Buckets([1, 2, 4]);
  for (const value of [0, 1, 1.5, 2, 4, 4.1, 100]) buckets.add(value);
  assert.deepEqual([...buckets.counts], [2, 2, 1, 2]);
  assert.equal(buckets.count, 7);
  assert.equal(buckets.sum, 112.6);
});

test('a value that was measured several times counts as often', () => {
  const buckets = new Buckets([1, 2]);
  buckets.add(2, 3);
  assert.deepEqual([[...buckets.counts], buckets.sum], [[0, 3, 0], 6]);
});

test('histograms of the same bounds add up', () => {
  const [one, other] = [new Buckets([1]), new Buckets([1])];
  one.add(0.5);
  other.add(3);
  other.addAll(one);
  assert.deepEqual([[...other.counts], other.sum], [[1, 1], 3.5]);
});

test('the buckets of times reach from 0.1 ms to 5 min, in ascending order', () => {
  assert.deepEqual([SECONDS[0], SECONDS.at(-1)], [0.0001, 300]);
  assert.deepEqual(
    SECONDS,
    [...SECONDS].sort((a, b) => a - b),
  );
});
