/** Estimates percentiles from the counts of a histogram's buckets: exact about the bucket, a guess within it. */

/**
 * Returns the value below which `share` (0 to 1) of the counted values are, as if they were spread evenly over their bucket;
 * null if there are none. `counts` has one more entry than `bounds`: for values above all bounds, of which the last bound is
 * returned.
 */
export function percentile(
  bounds: readonly number[],
  counts: ArrayLike<number>,
  share: number,
): number | null {
  let left = share * total(counts);
  if (left <= 0) return null;
  for (const [i, bound] of bounds.entries()) {
    const count = counts[i] ?? 0;
    const lower = bounds[i - 1] ?? 0;
    if (count >= left) return lower + (bound - lower) * (left / count);
    left -= count;
  }
  return bounds.at(-1) ?? null;
}

function total(counts: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < counts.length; i += 1) sum += counts[i] as number;
  return sum;
}
