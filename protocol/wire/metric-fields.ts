/** Encodes and decodes a metric in the head of a `metrics` message. */
import { Fields, malformed } from './fields.js';
import type { Metric } from './messages.js';

export function metricFields({ kind, name, value, unit, dimensions, callIds }: Metric): unknown[] {
  return [kind, name, value, unit, dimensions, callIds];
}

export function readMetric(metric: unknown): Metric {
  if (!Array.isArray(metric)) throw malformed('a metric is not an array');
  const f = new Fields(metric);
  return {
    kind: f.metricKind(0),
    name: f.string(1),
    value: f.numberOrString(2),
    unit: f.string(3),
    dimensions: f.string(4),
    callIds: f.uints(5),
  };
}
