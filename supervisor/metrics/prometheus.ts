/**
 * Metrics in Prometheus's text format 0.0.4. A metric of a scrape is a name, and a value for each combination of labels. The
 * number of combinations is limited: later ones are counted together, with `other` as every label. A combination that is no
 * longer measured frees its place.
 */
import { turns } from '../http/socket/shared-turns.js';
import { Buckets } from './call-counts.js';

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

/** Returns a function that limits the combinations of one metric, scrape by scrape. */
export function seriesLimit(most = MOST_SERIES): (measured: Iterable<Measured>) => Measured[] {
  let before: ReadonlySet<string> = new Set();
  return (measured) => {
    const all = Array.from(measured, (one) => ({ key: keyOf(one.labels), one }));
    const known = new Set(all.map(({ key }) => key).filter((key) => before.has(key)));
    const kept: Measured[] = [];
    const others: Measured[] = [];
    for (const { key, one } of all) {
      if (known.size < most) known.add(key);
      (known.has(key) ? kept : others).push(one);
    }
    before = known;
    const [first] = others;
    if (first === undefined) return kept;
    return [
      ...kept,
      { labels: otherOf(first.labels), value: others.map(({ value }) => value).reduce(together) },
    ];
  };
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

export const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Combinations of labels that are written in one turn of the event loop: 850 lines of a histogram, about 1 ms. */
const SLICE_SERIES = 50;

/**
 * Writes the families in slices, between which other requests are served: 600 models have 60,000 lines. Each family is
 * measured when its turn comes.
 */
export async function writeText(families: Iterable<Family>): Promise<string> {
  const texts: string[] = [];
  for (const family of families) {
    const lines = headOf(family);
    const measured = Array.from(family.measured);
    for (let from = 0; from < measured.length; from += SLICE_SERIES) {
      if (from > 0) await turns.own();
      for (const one of measured.slice(from, from + SLICE_SERIES)) lines.push(...linesOf(family, one));
    }
    texts.push(lines.join('\n'));
    await turns.own();
  }
  return `${texts.join('\n\n')}\n`;
}

export function headOf({ name, help, type }: Omit<Family, 'measured'>): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

/** The pairs of a sample, as they stand between its braces. */
export function pairsOf(labels: Labels): string[] {
  return Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
}

function linesOf(family: Family, { labels, value }: Measured): string[] {
  const pairs = pairsOf(labels);
  if (typeof value === 'number') return [lineOf(family.name, pairs, value)];
  const [bucket, sum, count] = sampleNames(family) as [string, string, string];
  let inAll = 0;
  // Prometheus's buckets are cumulative: each includes those before it.
  const buckets = Array.from(value.counts, (inBucket, i) => {
    inAll += inBucket;
    return lineOf(bucket, [...pairs, `le="${value.bounds[i] ?? '+Inf'}"`], inAll);
  });
  return [...buckets, lineOf(sum, pairs, value.sum), lineOf(count, pairs, inAll)];
}

function lineOf(name: string, pairs: readonly string[], value: number): string {
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${asNumber(value)}`;
}

function asNumber(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
