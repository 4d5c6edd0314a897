/** A metric of a scrape: a name, and a value for each combination of labels. */
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

/** The sum of two values. */
export function together(one: Measured['value'], other: Measured['value']): Measured['value'] {
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  const sum = new Buckets((one as Buckets).bounds);
  for (const buckets of [one, other]) sum.addAll(buckets as Buckets);
  return sum;
}
