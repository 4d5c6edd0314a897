import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Buckets, SECONDS } from '../../../supervisor/metrics/buckets.js';

test('a value counts in the first bucket with a bound of at least the value', () => {
  const buckets = new Buckets([1, 2, 4]);
  for (const value of [0, 1, 1.5, 2, 4, 4.1, 100]) buckets.add(value);
  assert.deepEqual([...buckets.counts], [2, 2, 1, 2]);
  assert.equal(buckets.count, 7);
  assert.equal(buckets.sum, 112.6);
});

test('add counts a value `times` times', () => {
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

test('the bounds of times are ascending, from 0.1 ms to 5 min', () => {
  assert.deepEqual([SECONDS[0], SECONDS.at(-1)], [0.0001, 300]);
  assert.deepEqual(
    SECONDS,
    [...SECONDS].sort((a, b) => a - b),
  );
});
