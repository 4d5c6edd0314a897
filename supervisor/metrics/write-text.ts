/** Writes metrics in Prometheus's text format 0.0.4, by way of prom-client, which is loaded with the first scrape. */
import { Registry, type Gauge } from 'prom-client';
import type { Buckets } from './buckets.js';
import type { Family, Labels, Measured } from './measured.js';

export const TEXT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

export function writeText(families: readonly Family[]): Promise<string> {
  const registry = new Registry();
  for (const family of families) registry.registerMetric(asMetric(family));
  return registry.metrics();
}

/** The registry asks a metric for its values, and for nothing else. */
function asMetric({ name, help, type, measured }: Family): Gauge {
  const values = Array.from(measured, (one) => samplesOf(name, one)).flat();
  // The registry keeps it in an object, by this name: an app's own may be one that every object has, `constructor`.
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

/** Buckets are cumulative: each counts those before it too. */
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
