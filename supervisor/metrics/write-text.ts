/** Writes metrics in Prometheus's text format 0.0.4, with prom-client, which the first scrape loads. */
import { Registry, type Gauge } from 'prom-client';
import { nextTurn } from '../http/json/slices.js';
import type { Buckets } from './buckets.js';
import type { Family, Labels, Measured } from './measured.js';

export const TEXT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Combinations of labels that are written in one turn of the event loop: 850 lines of a histogram, some 3 ms. */
const SLICE_SERIES = 50;

/**
 * Writes the families in slices, between which other requests are served: 600 models have 60,000 lines, a second of work.
 * Each family is measured when its turn comes.
 */
export async function writeText(families: Iterable<Family>): Promise<string> {
  const texts: string[] = [];
  for (const family of families) texts.push(await writeFamily(family));
  return `${texts.join('\n\n')}\n`;
}

async function writeFamily(family: Family): Promise<string> {
  const measured = Array.from(family.measured);
  const texts = [await writeSlice(family, measured.slice(0, SLICE_SERIES))];
  for (let from = SLICE_SERIES; from < measured.length; from += SLICE_SERIES) {
    await nextTurn();
    const text = await writeSlice(family, measured.slice(from, from + SLICE_SERIES));
    texts.push(withoutHead(text));
  }
  await nextTurn();
  return texts.join('\n');
}

async function writeSlice({ name, help, type }: Family, measured: readonly Measured[]): Promise<string> {
  const values = measured.flatMap((one) => samplesOf(name, one));
  // The registry only calls `get`. It uses the outer name as a property of an object, which `constructor` must not be.
  const metric = { name: 'slice', help, type, get: () => Promise.resolve({ name, help, type, values }) };
  const registry = new Registry();
  registry.registerMetric(metric as unknown as Gauge);
  return (await registry.metrics()).slice(0, -1); // without the last line's end
}

/** Removes the lines HELP and TYPE. */
function withoutHead(text: string): string {
  const helpEnd = text.indexOf('\n');
  return text.slice(text.indexOf('\n', helpEnd + 1) + 1);
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

function samplesOf(name: string, { labels, value }: Measured): Sample[] {
  return typeof value === 'number'
    ? [{ metricName: name, labels, value }]
    : histogramSamples(name, labels, value);
}

/** Prometheus's buckets are cumulative: each includes those before it. */
function histogramSamples(name: string, labels: Labels, { bounds, counts, sum }: Buckets): Sample[] {
  let count = 0;
  const buckets = Array.from(counts, (inBucket, i) => {
    count += inBucket;
    const le = i < bounds.length ? String(bounds[i]) : '+Inf';
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
