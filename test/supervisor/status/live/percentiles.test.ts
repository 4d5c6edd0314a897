/** Percentiles that are estimated from buckets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Buckets, SECONDS } from '../../../../supervisor/metrics/call-counts.js';
import { percentile } from '../../../../supervisor/status/live/model-meter.js';

const BOUNDS = [1, 2, 4];

for (const [what, counts, share, expected] of [
  ['no value has no percentile', [0, 0, 0, 0], 0.5, null],
  ['values are spread evenly over the first bucket', [10, 0, 0, 0], 0.5, 0.5],
  ['values are spread evenly over a later bucket', [0, 0, 10, 0], 0.5, 3],
  ['the bucket is that in which the share is reached', [5, 4, 1, 0], 0.95, 3],
  ['a value above all bounds counts as the last one', [0, 0, 0, 3], 0.5, 4],
] as const) {
  test(what, () => {
    assert.equal(percentile(BOUNDS, Float64Array.from(counts), share), expected);
  });
}

test('an estimate is in the same bucket as the exact value', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 1e-6, max: 299, noNaN: true }), { minLength: 1, maxLength: 200 }),
      fc.constantFrom(0.5, 0.95, 0.99),
      (values, share) => {
        const buckets = new Buckets(SECONDS);
        for (const value of values) buckets.add(value);
        const sorted = [...values].sort((a, b) => a - b);
        const exact = sorted[Math.ceil(share * sorted.length - 1e-9) - 1] as number;
        const estimate = percentile(SECONDS, buckets.counts, share) as number;
        const bucketOf = (value: number): number => SECONDS.findIndex((bound) => value <= bound);
        return bucketOf(estimate) === bucketOf(exact);
      },
    ),
  );
});
