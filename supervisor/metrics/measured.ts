/**
 * A metric of a scrape: a name, and a value for each combination of labels. The number of combinations is limited: later ones
 * are counted together, with `other` as every label. A combination that is no longer measured frees its place.
 */
import { Buckets } from './buckets.js';

export type Labels = Readonly<Record<string, string>>;

/** The value of one combination of labels. */
export interface Measured {
  readonly labels: Labels;
  readonly value: number | Buckets;
}

export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly measured: Iterable<Measured>;
}

/** Sample names of a family: those that a scrape has, and may be asked for by. */
export function sampleNames({ name, type }: Pick<Family, 'name' | 'type'>): string[] {
  return type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

/** Combinations of labels per metric. */
export const MOST_SERIES = 1000;

export class SeriesLimit {
  readonly #most: number;
  #known: ReadonlySet<string> = new Set();

  constructor(most = MOST_SERIES) {
    this.#most = most;
  }

  bound(measured: Iterable<Measured>): Measured[] {
    const all = Array.from(measured, (one) => ({ key: keyOf(one.labels), one }));
    const known = new Set(all.map(({ key }) => key).filter((key) => this.#known.has(key)));
    const kept: Measured[] = [];
    let other: Measured | null = null;
    for (const { key, one } of all) {
      if (known.size < this.#most) known.add(key);
      if (known.has(key)) kept.push(one);
      else
        other = {
          labels: otherOf(one.labels),
          value: other === null ? one.value : together(other.value, one.value),
        };
    }
    this.#known = known;
    return other === null ? kept : [...kept, other];
  }
}

/** The sum of two values. */
function together(one: Measured['value'], other: Measured['value']): Measured['value'] {
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  const sum = new Buckets((one as Buckets).bounds);
  for (const buckets of [one, other]) sum.addAll(buckets as Buckets);
  return sum;
}

export function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels));
}

export function otherOf(labels: Labels): Labels {
  return Object.fromEntries(Object.keys(labels).map((name) => [name, 'other']));
}
