/** Checks an app's metrics: Prometheus has rules for names and labels, and some names are reserved for the server. */
import type { MetricLabels } from '../api/types.js';

export type OwnMetricKind = 'counter' | 'gauge' | 'histogram';

export interface OwnMetric {
  readonly kind: OwnMetricKind;
  readonly name: string;
  readonly value: number;
  readonly labels: MetricLabels;
}

const MOST_METRICS = 100;
const MOST_LABELS = 10;
const MOST_CHARS = 256;

/** Labels that the server adds, or that belong to a kind of metric. */
const TAKEN_LABELS: readonly string[] = ['model', 'version', 'worker', 'le', 'quantile'];

/**
 * Returns the error of a metric that is not allowed, else null. `kinds`: the kinds of the app's metrics so far, by
 * name.
 */
export function metricError(metric: OwnMetric, kinds: ReadonlyMap<string, OwnMetricKind>): Error | null {
  const { kind, name, value } = metric;
  const known = kinds.get(name);
  if (known === undefined) {
    const problem = nameProblem(name);
    if (problem !== null) return new TypeError(`metric ${shown(name)}: ${problem}`);
    if (kinds.size >= MOST_METRICS)
      return new RangeError(
        `metric ${shown(name)}: an app may have ${MOST_METRICS} metrics; use labels for values that differ from call to call`,
      );
  } else if (known !== kind) return new TypeError(`metric ${shown(name)}: it is a ${known}, not a ${kind}`);
  if (!Number.isFinite(value))
    return new TypeError(`metric ${shown(name)}: its value is not a finite number, but ${shown(value)}`);
  if (kind === 'counter' && value < 0)
    return new RangeError(`metric ${shown(name)}: a counter cannot fall: ${value} is below 0`);
  const problem = labelsProblem(metric.labels);
  return problem === null ? null : new TypeError(`metric ${shown(name)}: ${problem}`);
}

function nameProblem(name: unknown): string | null {
  if (typeof name !== 'string' || !/^[a-zA-Z_]\w*$/.test(name) || name.length > MOST_CHARS)
    return `a name may have up to ${MOST_CHARS} letters, digits and underscores, and must not begin with a digit`;
  if (/^banana_|^__/.test(name)) return 'names that begin with banana_ or __ are reserved';
  if (/_(?:bucket|sum|count)$/.test(name))
    return 'names that end in _bucket, _sum or _count are reserved for histograms';
  return null;
}

function labelsProblem(labels: unknown): string | null {
  if (typeof labels !== 'object' || labels === null || Array.isArray(labels))
    return 'its labels must be an object such as { language: "en" }';
  const entries = Object.entries(labels);
  if (entries.length > MOST_LABELS) return `it has ${entries.length} labels; ${MOST_LABELS} are allowed`;
  for (const [label, text] of entries) {
    if (!/^[a-zA-Z_]\w*$/.test(label) || label.startsWith('__') || label.length > MOST_CHARS)
      return `${shown(label)} is not a valid label: use letters, digits and underscores, beginning with neither a digit nor __`;
    if (TAKEN_LABELS.includes(label)) return `the label ${shown(label)} is reserved for the server`;
    if (!['string', 'number', 'boolean'].includes(typeof text))
      return `the value of the label ${shown(label)} must be text, a number or a boolean`;
    if (String(text).length > MOST_CHARS || /[\r\n]/.test(String(text)))
      return `the value of the label ${shown(label)} must be one line of up to ${MOST_CHARS} characters`;
  }
  return null;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 100)) : String(value);
}
