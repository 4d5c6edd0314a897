/** Medians, percentiles and a store of samples that costs the measured program nothing it would notice. */

export function median(values: readonly number[]): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Keeps up to `capacity` numbers exactly, in memory allocated beforehand; further ones are dropped. */
export class Samples {
  readonly #values: Float64Array;
  #count = 0;

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity);
  }

  add(value: number): void {
    if (this.#count < this.#values.length) this.#values[this.#count++] = value;
  }

  /** Every figure is NaN if nothing was added. */
  percentiles(): Percentiles {
    const sorted = this.#values.subarray(0, this.#count).sort();
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
    return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
  }
}
