/**
 * Limits the number of combinations of labels of one metric: later ones are counted together, with `other` as every label.
 * A combination that is no longer measured frees its place.
 */
import { together, type Labels, type Measured } from './measured.js';

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

export function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels));
}

export function otherOf(labels: Labels): Labels {
  return Object.fromEntries(Object.keys(labels).map((name) => [name, 'other']));
}
