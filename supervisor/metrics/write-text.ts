/** Writes metrics in Prometheus's text format 0.0.4, with prom-client, which the first scrape loads. */
import { Registry, type Gauge } from 'prom-client';
import type { Buckets } from './buckets.js';
import type { Family, Labels, Measured } from './measured.js';

export const TEXT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

export function writeText(families: readonly Family[]): Promise<string> {
  const registry = new Registry();
  for (const family of families) registry.registerMetric(asMetric(family));
  return registry.metrics();
}

/** A minimal metric for prom-client's registry, which only calls `get`. */
function asMetric({ name, help, type, measured }: Family): Gauge {
  const values = Array.from(measured, (one) => samplesOf(name, one)).flat();
  // The registry uses this name as a property of an object; the prefix protects it from names like `constructor`.
  const metric = {
    name: `metric ${name}`,
    help,
    type,
    get: () => Promise.resolve({ name, help, type, values }),
  };
  return metric as unknown as Gauge;
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
