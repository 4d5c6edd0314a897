/** Writes metrics in Prometheus's text format 0.0.4. */
import { turns } from '../http/socket/shared-turns.js';
import { sampleNames, type Family, type Labels, type Measured } from './measured.js';

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
