/** A histogram: how many values were at most each of some bounds, and their sum. Adding a value costs some comparisons. */

/** In seconds, from 0.1 ms to 5 min: what fits a call, its wait and its run. */
export const SECONDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50,
  100, 300,
];

export class Buckets {
  readonly bounds: readonly number[];
  /** How many values stand between a bound and the one before; the last one: above all bounds. */
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

  /** `times`: how often it was measured. */
  add(value: number, times = 1): void {
    const { bounds, counts } = this;
    let i = 0;
    while (i < bounds.length && value > (bounds[i] as number)) i += 1;
    counts[i] = (counts[i] as number) + times;
    this.#sum += value * times;
  }

  /** `other` has the same bounds. */
  addAll({ counts, sum }: Buckets): void {
    for (const [i, count] of counts.entries()) this.counts[i] = (this.counts[i] as number) + count;
    this.#sum += sum;
  }
}
