/** A histogram: the number of values in each bucket, and their sum. Adding a value costs some comparisons. */

/** Bounds in seconds, from 0.1 ms to 5 min, for calls, their waits and runs. */
export const SECONDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50,
  100, 300,
];

export class Buckets {
  readonly bounds: readonly number[];
  /** Number of values up to each bound and above the previous one; the last counts values above all bounds. */
  readonly counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  /** Adds `value` as if it was measured `times` times. */
  add(value: number, times = 1): void {
    const { bounds, counts } = this;
    let i = 0;
    while (i < bounds.length && value > (bounds[i] as number)) i += 1;
    counts[i] = (counts[i] as number) + times;
    this.#sum += value * times;
  }

  /** Adds all values of a histogram with the same bounds. */
  addAll({ counts, sum }: Buckets): void {
    for (const [i, count] of counts.entries()) this.counts[i] = (this.counts[i] as number) + count;
    this.#sum += sum;
  }
}
